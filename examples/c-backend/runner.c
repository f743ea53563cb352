// SPDX-License-Identifier: Apache-2.0
// Runs what `ferry conformance --export` writes against `enter`, as docs/conformance.md has it.
//
// Scripts are the lines of standard input, and a line of output is the result of one. Each runs in
// a process of its own, so a crash or an endless loop is one failure. Exit code: 0 nothing failed,
// 1 something did, 2 nothing passed.
//
// `start` is taken as `put`: what a program starts with is not the backend's business.

#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "machine.h"

#define SECONDS 20   // that a script may take
#define GUARD 65536  // bytes past the end of a segment that cannot be touched

enum { FAILED = 1, REFUSED = 3 };  // exit codes of a script's process

static char message[200];
#define FAIL(...) return snprintf(message, sizeof message, __VA_ARGS__), false

// JSON, without blanks between tokens. A line becomes a tree; texts stay in the line as they are.

struct node {
    char kind;  // its first character; 0 for every number
    char *key, *text;
    uint64_t number;
    struct node *first, *next;
};

static size_t node_count;    // no fewer than the line needs
static struct node *unused;  // those of them that are not used yet

static char *quoted(char **at) {
    char *start = ++*at;
    while (**at != '"') *at += **at == '\\' ? 2 : 1;
    *(*at)++ = 0;
    return start;
}

static struct node *parse(char **at) {
    struct node *node = unused++, **link = &node->first;
    node->kind = **at;
    if (**at == '"') {
        node->text = quoted(at);
    } else if (**at == '{' || **at == '[') {
        for (++*at; **at != '}' && **at != ']'; *at += **at == ',') {
            char *key = node->kind == '{' ? quoted(at) : NULL;
            if (key) ++*at;  // the colon
            *link = parse(at);
            (*link)->key = key;
            link = &(*link)->next;
        }
        ++*at;
    } else if (**at >= '0' && **at <= '9') {
        node->kind = '0';
        node->number = strtoull(*at, at, 10);
    } else {
        while (**at >= 'a' && **at <= 'z') ++*at;  // null, true, false
    }
    return node;
}

static struct node *find(const struct node *object, const char *key) {
    struct node *node = object->first;
    while (node && strcmp(node->key, key) != 0) node = node->next;
    return node;
}

static struct node *get(const struct node *object, const char *key) {
    struct node *node = find(object, key);
    if (node) return node;
    printf("a script without %s\n", key);
    fflush(stdout);
    _exit(FAILED);
}

static uint64_t number(const struct node *object, const char *key) {
    return get(object, key)->number;
}

static bool is(const struct node *object, const char *key, const char *text) {
    const struct node *node = find(object, key);
    return node && node->kind == '"' && strcmp(node->text, text) == 0;
}

// The numbers of a list, and of the lists in it, one after another; the place past the last one.
static uint64_t *flatten(const struct node *node, uint64_t *to) {
    if (node->kind == '0') *to++ = node->number;
    for (const struct node *item = node->first; item; item = item->next) to = flatten(item, to);
    return to;
}

// Writes a piece of memory (hex digits, or a number of zeros) or a list of them, and says how many
// bytes it has; only that if `to` is NULL.
static uint64_t fill(unsigned char *to, const struct node *memory) {
    uint64_t size = memory->kind == '"' ? strlen(memory->text) / 2 : memory->number;
    for (uint64_t i = 0; to && i < size; i++) {
        const char *digit = memory->kind == '"' ? memory->text + 2 * i : "00";
        to[i] = (unsigned char)((digit[0] % 32 + 9) % 25 << 4 | (digit[1] % 32 + 9) % 25);
    }
    for (const struct node *piece = memory->first; piece; piece = piece->next)
        size += fill(to ? to + size : NULL, piece);
    return size;
}

static bool same(const struct node *state, const char *what, uint64_t address, uint64_t size) {
    const unsigned char *found = (const unsigned char *)address;
    uint64_t wanted = fill(NULL, get(state, what));
    unsigned char *expected = malloc(wanted + 1);
    if (wanted != size) FAIL("%s: expected %lu bytes, found %lu", what, wanted, size);
    fill(expected, get(state, what));
    for (uint64_t i = 0; i < size; i++)
        if (found[i] != expected[i])
            FAIL("%s, byte %lu: expected %02x, found %02x", what, i, expected[i], found[i]);
    free(expected);
    return true;
}

// Machines.

struct machine {
    struct control control;
    uint64_t position;  // along the script's trail
};

static struct machine machines[4];
static const struct node *script;
static unsigned char *image;

static void decode(const char *base64) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned char *to = image = malloc(strlen(base64));
    uint32_t bits = 0;
    for (int count = 0; *base64 && *base64 != '='; base64++) {
        bits = bits << 6 | (uint32_t)(strchr(digits, *base64) - digits);
        if ((count += 6) >= 8) *to++ = (unsigned char)(bits >> (count -= 8));
    }
}

static uint64_t reserve(uint64_t bytes) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    return (uint64_t)mmap(NULL, bytes + GUARD, PROT_NONE, flags, -1, 0);
}

static void make_usable(uint64_t address, uint64_t bytes) {
    mprotect((void *)address, bytes, PROT_READ | PROT_WRITE);
}

static void make(struct machine *machine) {
    struct control *control = &machine->control;
    const struct node *limits = get(script, "limits");
    uint64_t stack_size = number(limits, "stack");
    uint64_t *functions = calloc(node_count, 8), *table = calloc(node_count, 8);
    memset(machine, 0, sizeof *machine);
    control->abi_version = 7;
    control->stack = reserve(stack_size);
    control->stack_end = control->stack + stack_size;
    make_usable(control->stack, stack_size);
    control->heap_limit = number(limits, "heap");
    control->heap = reserve(control->heap_limit);
    flatten(get(script, "functions"), functions);
    control->functions = (uint64_t)functions;
    control->table = (uint64_t)table;
    control->table_size = (uint64_t)(flatten(get(script, "table"), table) - table);
}

static void set(struct control *control, const struct node *state) {
    control->status = (uint32_t)number(state, "status");
    control->trap = find(state, "trap") ? (uint32_t)number(state, "trap") : 0;
    control->pc = number(state, "pc");
    control->sp = number(state, "sp");
    control->fp = number(state, "fp");
    control->hp = number(state, "hp");
    control->heap_capacity = number(state, "heap_capacity");
    make_usable(control->heap, control->heap_capacity);
    control->static_count = fill(NULL, get(state, "statics")) / 8;
    control->statics = (uint64_t)realloc((void *)control->statics, control->static_count * 8 + 1);
    fill((unsigned char *)control->statics, get(state, "statics"));
    fill((unsigned char *)control->stack, get(state, "stack"));
    fill((unsigned char *)control->heap, get(state, "heap"));
}

static bool field(const struct node *state, const char *name, uint64_t found) {
    const struct node *node = find(state, name);
    if (!node || node->number == found) return true;
    FAIL("%s: expected %lu, found %lu", name, node->number, found);
}

// Whether it is in that state; with a `status` that is not 0, with it in place of the state's.
static bool matches(const struct control *control, const struct node *state, uint32_t status) {
    if (status && control->status != status) FAIL("status: found %u", control->status);
    for (uint64_t i = control->hp; i < control->heap_capacity; i++)
        if (((const char *)control->heap)[i]) FAIL("heap, byte %lu: not zero, and not in use", i);
    bool why = field(state, "status", control->status) && field(state, "trap", control->trap)
        && field(state, "exit_id", control->exit_id) && field(state, "wanted", control->wanted);
    return (status || why)
        && field(state, "fuel", (uint64_t)control->fuel) && field(state, "pc", control->pc)
        && field(state, "sp", control->sp) && field(state, "fp", control->fp)
        && field(state, "hp", control->hp) && field(state, "heap_capacity", control->heap_capacity)
        && same(state, "statics", control->statics, control->static_count * 8)
        && same(state, "stack", control->stack, control->sp * 8)
        && same(state, "heap", control->heap, control->hp);
}

// Steps.

static bool on_trail(struct machine *machine, const struct node *step, uint64_t paid) {
    const struct control *control = &machine->control;
    const struct node *trail = get(script, "trail"), *state = get(trail, "states")->first;
    uint64_t period = number(trail, "period"), count = 1;
    for (const struct node *last = state; last->next; last = last->next) count++;
    uint32_t status = is(step, "trail", "ahead") ? FUEL : INTERRUPTED;
    bool ended = status == INTERRUPTED && !period && control->status != INTERRUPTED;
    bool at_end = ended || is(step, "trail", "last");
    if (status == FUEL && control->fuel != 0) FAIL("fuel: expected 0, found %ld", control->fuel);
    if (status == INTERRUPTED && !at_end && get(step, "counting")->kind == 'f') {
        for (machine->position = 0; state; state = state->next, machine->position++)
            if (matches(control, state, status)) return true;
        FAIL("no state of the trail: pc %lu, status %u", control->pc, control->status);
    }
    machine->position += status == FUEL ? number(step, "ahead") : paid;
    if (at_end) machine->position = count - 1;
    if (machine->position >= count && !period) FAIL("%lu instructions were paid", paid);
    while (machine->position >= count) machine->position -= period;
    for (uint64_t i = 0; i < machine->position; i++) state = state->next;
    return matches(control, state, at_end ? 0 : status);
}

static void *interrupt_later(void *control) {
    usleep(20000);
    __atomic_store_n(&((struct control *)control)->interrupt, 1, __ATOMIC_RELAXED);
    return NULL;
}

static bool do_enter(struct machine *machine, const struct node *step) {
    struct control *control = &machine->control;
    pthread_t thread;
    if (find(step, "fuel")) control->fuel = (int64_t)number(step, "fuel");
    control->interrupt = is(step, "interrupt", "before");
    if (is(step, "interrupt", "later")) pthread_create(&thread, NULL, interrupt_later, control);
    int64_t before = control->fuel;
    // CODE is the first section of an image: it follows two headers.
    const struct instruction *code = (const struct instruction *)(image + 56 + 16);
    uint32_t status = enter(control, code, get(step, "counting")->kind == 't');
    if (is(step, "interrupt", "later")) pthread_join(thread, NULL);
    uint64_t code_size;
    memcpy(&code_size, image + 56 + 8, 8);
    if (status == UNKNOWN && control->pc < code_size / sizeof *code) _exit(REFUSED);
    if (status != control->status) FAIL("returned %u, but set %u", status, control->status);
    const struct node *expected = find(step, "expected");
    if (expected) return matches(control, expected, 0);
    return on_trail(machine, step, (uint64_t)(before - control->fuel));
}

static bool do_step(const struct node *step) {
    struct machine *machine = &machines[number(step, "machine")];
    struct control *control = &machine->control;
    if (is(step, "do", "enter")) return do_enter(machine, step);
    if (is(step, "do", "start") || is(step, "do", "load")) {
        make(machine);
        set(control, get(step, "expected"));
    } else if (is(step, "do", "put") || is(step, "do", "move")) {
        if (is(step, "do", "put")) make(machine);
        set(control, get(step, "state"));
    } else if (is(step, "do", "litter")) {
        uint64_t at = control->stack + control->sp * 8;
        while (at < control->stack_end) at += fill((unsigned char *)at, get(step, "word"));
    } else if (is(step, "do", "grow")) {
        control->heap_capacity = number(step, "heap_capacity");
        make_usable(control->heap, control->heap_capacity);
    } else if (is(step, "do", "host")) {
        control->sp -= number(step, "arguments");
        unsigned char *top = (unsigned char *)control->stack + control->sp * 8;
        control->sp += fill(top, get(step, "result")) / 8;
        control->pc++;
        control->fuel -= get(step, "counting")->kind == 't';
    } else if (!is(step, "do", "save")) {
        FAIL("a step of another kind");
    }
    return true;
}

// The exit code of its process; what failed is printed after the name of the case.
static int run(char *line, size_t size) {
    node_count = 1;
    for (size_t i = 0; i < size; i++) node_count += strchr("{[,", line[i]) != NULL;
    unused = calloc(node_count, sizeof *unused);
    script = parse(&line);
    decode(get(script, "image")->text);
    int count = 0;
    for (struct node *step = get(script, "steps")->first; step; step = step->next, count++)
        if (!do_step(step)) {
            printf("failed %s: ", get(script, "case")->text);
            printf("%s, step %d: %s\n", get(script, "about")->text, count, message);
            return FAILED;
        }
    printf("passed %s\n", get(script, "case")->text);
    return 0;
}

int main(void) {
    char *line = NULL, name[200] = "a line without a case";
    size_t room = 0;
    unsigned passed = 0, failed = 0, refused = 0;
    for (ssize_t size; (size = getline(&line, &room, stdin)) > 0;) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            alarm(SECONDS);
            int code = run(line, (size_t)size);
            fflush(stdout);
            _exit(code);
        }
        waitpid(child, &status, 0);
        const char *at = strstr(line, "\"case\":\"");
        sscanf(at ? at : "", "\"case\":\"%199[^\"]", name);
        int code = WIFEXITED(status) ? WEXITSTATUS(status) : FAILED;
        if (WIFSIGNALED(status)) printf("failed %s: %s\n", name, strsignal(WTERMSIG(status)));
        if (code == REFUSED) printf("refused %s\n", name);
        fflush(stdout);
        *(code == 0 ? &passed : code == REFUSED ? &refused : &failed) += 1;
    }
    fprintf(stderr, "%u passed, %u failed, %u refused\n", passed, failed, refused);
    return failed ? 1 : passed ? 0 : 2;
}
