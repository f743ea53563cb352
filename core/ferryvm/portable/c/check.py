# SPDX-License-Identifier: Apache-2.0
"""The harness in C: a program that calls an exported function with its golden vectors.

It reads them with the standard library only, allocates each array in its exact size, so that a
sanitizer finds accesses out of bounds, and prints a line for each vector that fails.
"""

from __future__ import annotations

import re

from ferryvm.portable.c.spelling import SCALARS
from ferryvm.portable.expression import Expression, expression_text
from ferryvm.portable.interface import ArrayArgument, Interface

_START = """\
/* Checks @NAME@ with its golden vectors: check [vectors.txt]. Status 1: a vector fails; 2: no vectors. */

#if defined(__unix__) || defined(__APPLE__)
#define _POSIX_C_SOURCE 200809L /* alarm */
#define HAS_ALARM
#endif

@INCLUDE@
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAS_ALARM
#include <signal.h>
#include <unistd.h>
#endif

struct argument {
    const char *name;
    size_t bytes; /* of a number or an element */
    bool is_array;
    bool is_float;
};

struct value {
    uint64_t bits;
    unsigned char *data;
    unsigned char *expected;
    size_t length;
    size_t same; /* the argument whose array it is */
};

"""

_READING = """\
static FILE *file;
static char word[64];

static bool next(void)
{
    return fscanf(file, "%63s", word) == 1;
}

static _Noreturn void broken(void)
{
    fprintf(stderr, "the vectors are damaged near '%s'\\n", word);
    exit(2);
}

static uint64_t number(int base)
{
    char *end = word;
    uint64_t found = next() ? strtoull(word, &end, base) : 0;
    if (end == word || *end != 0)
        broken();
    return found;
}

static void *allocated(size_t size)
{
    void *made = malloc(size ? size : 1);
    if (made == NULL) {
        fprintf(stderr, "out of memory\\n");
        exit(2);
    }
    return made;
}

static void elements(unsigned char *to, size_t bytes, size_t length)
{
    for (size_t i = 0; i < length; ++i) {
        uint64_t bits = number(16);
        memcpy(to + i * bytes, &bits, bytes);
    }
}

static uint64_t element(const unsigned char *from, size_t bytes, size_t i)
{
    uint64_t bits = 0;
    memcpy(&bits, from + i * bytes, bytes);
    return bits;
}

static bool is_nan(uint64_t bits, size_t bytes)
{
    if (bytes == 4)
        return (bits & 0x7fffffff) > 0x7f800000;
    return (bits & 0x7fffffffffffffff) > 0x7ff0000000000000;
}

static bool equal(uint64_t a, uint64_t b, size_t bytes, bool is_float)
{
    return a == b || (is_float && is_nan(a, bytes) && is_nan(b, bytes));
}

static void read_argument(struct value *v, size_t at)
{
    const struct argument *kind = &arguments[at];
    if (!next())
        broken();
    v[at].same = at;
    if (strcmp(word, "s") == 0 && !kind->is_array) {
        v[at].bits = number(16);
    } else if (strcmp(word, "=") == 0 && kind->is_array) {
        v[at].same = (size_t)number(10);
        if (v[at].same >= at || !arguments[v[at].same].is_array)
            broken();
        v[at].data = v[v[at].same].data;
        v[at].length = v[v[at].same].length;
    } else if (strcmp(word, "a") == 0 && kind->is_array) {
        v[at].length = (size_t)number(10);
        v[at].data = allocated(v[at].length * kind->bytes);
        v[at].expected = allocated(v[at].length * kind->bytes);
        elements(v[at].data, kind->bytes, v[at].length);
        memcpy(v[at].expected, v[at].data, v[at].length * kind->bytes);
    } else {
        broken();
    }
}

static void read_output(struct value *v)
{
    size_t at = (size_t)number(10), length = (size_t)number(10);
    if (at > ARGUMENTS || !arguments[at].is_array || length != v[at].length || v[at].same != at)
        broken();
    elements(v[at].expected, arguments[at].bytes, length);
}

enum { SECONDS = 10 }; /* in which a call has to end */

#ifdef HAS_ALARM
static char late[64];
static size_t late_length;

static void on_alarm(int signal)
{
    (void)signal;
    if (write(1, late, late_length) >= 0)
        _exit(1);
    _exit(2);
}
#endif

static int32_t call_in_time(uint64_t vector, const struct value *v, uint64_t *found)
{
#ifdef HAS_ALARM
    int length = snprintf(late, sizeof late, "vector %" PRIu64 ": does not end\\n", vector);
    late_length = length > 0 ? (size_t)length : 0;
    fflush(stdout);
    signal(SIGALRM, on_alarm);
    alarm(SECONDS);
#else
    (void)vector;
#endif
    int32_t status = call(v, found);
#ifdef HAS_ALARM
    alarm(0);
#endif
    return status;
}

/* True if all is as expected; else a line is printed. */
static bool compared(uint64_t vector, const struct value *v)
{
    for (size_t at = 0; at != ARGUMENTS; ++at) {
        size_t bytes = arguments[at].bytes;
        for (size_t i = 0; arguments[at].is_array && v[at].same == at && i < v[at].length; ++i) {
            uint64_t is = element(v[at].data, bytes, i), wanted = element(v[at].expected, bytes, i);
            if (!equal(is, wanted, bytes, arguments[at].is_float)) {
                printf("vector %" PRIu64 ": %s[%zu] is %" PRIx64 ", expected %" PRIx64 "\\n", vector,
                       arguments[at].name, i, is, wanted);
                return false;
            }
        }
    }
    return true;
}

static bool checked(void)
{
    uint64_t vector = number(10);
    char *end;
    if (!next())
        broken();
    long expected = strtol(word, &end, 10);
    if (end == word || *end != 0)
        broken();
    struct value v[ARGUMENTS + 1];
    memset(v, 0, sizeof v);
    for (size_t at = 0; at != ARGUMENTS; ++at)
        read_argument(v, at);
    uint64_t wanted[RESULTS + 1] = {0}, found[RESULTS + 1] = {0};
    size_t known = 0;
    while (next() && strcmp(word, ".") != 0) {
        if (strcmp(word, "o") == 0)
            read_output(v);
        else if (strcmp(word, "r") == 0 && known != RESULTS)
            wanted[known++] = number(16);
        else
            broken();
    }
    int32_t status = call_in_time(vector, v, found);
    bool is_right = status == expected;
    if (!is_right)
        printf("vector %" PRIu64 ": status %" PRId32 ", expected %ld\\n", vector, status, expected);
    for (size_t at = 0; is_right && at != known; ++at) {
        is_right = equal(found[at], wanted[at], results[at].bytes, results[at].is_float);
        if (!is_right)
            printf("vector %" PRIu64 ": %s is %" PRIx64 ", expected %" PRIx64 "\\n", vector,
                   results[at].name, found[at], wanted[at]);
    }
    /* Items above the lowest that fails may have run, or not. */
    is_right = is_right && ((COUNTS > 0 && status != 0) || compared(vector, v));
    for (size_t at = 0; at != ARGUMENTS; ++at) {
        if (v[at].same == at) {
            free(v[at].data);
            free(v[at].expected);
        }
    }
    return is_right;
}

int main(int count, char **words)
{
    const char *path = count > 1 ? words[1] : "vectors.txt";
    file = fopen(path, "r");
    if (file == NULL || !next() || strcmp(word, "ferryvm-vectors") != 0 || number(10) != 1 || !next()
        || strcmp(word, "@NAME@") != 0) {
        fprintf(stderr, "%s: no vectors of @NAME@\\n", path);
        return 2;
    }
    size_t all = 0, failed = 0;
    while (next()) {
        if (strcmp(word, "v") != 0)
            broken();
        ++all;
        failed += !checked();
    }
    fclose(file);
    if (failed == 0 && all > 0)
        printf("@NAME@: %zu vectors pass (C)\\n", all);
    else
        printf("@NAME@: %zu of %zu vectors fail (C)\\n", failed, all);
    return failed != 0 || all == 0;
}
"""


def check_text(interface: Interface) -> str:
    """The source of the harness."""
    include = f'#include "{interface.name}.h"\n'
    return harness_text(interface, include, _call(interface))


def harness_text(interface: Interface, include: str, call: str) -> str:
    """The source of a harness that includes a header and calls by a function `call` in C."""
    text = _START.replace("@INCLUDE@", include) + _tables(interface) + call + "\n" + _READING
    return text.replace("@NAME@", interface.name)


def _row(name: str, bytes_: int, is_array: bool, is_float: bool) -> str:
    flags = ", ".join("true" if flag else "false" for flag in (is_array, is_float))
    return f'    {{"{name}", {bytes_}, {flags}}},\n'


def _tables(interface: Interface) -> str:
    rows = ""
    for each in interface.inputs:
        if isinstance(each, ArrayArgument):
            rows += _row(each.name, each.element.bytes, True, each.element.type.is_float)
        else:
            rows += _row(each.name, each.type.bits // 8, False, each.type.is_float)
    results = "".join(
        _row(each.name, each.type.bits // 8, False, each.type.is_float)
        for each in interface.results
    )
    end = _row("", 0, False, False)
    return (
        f"enum {{ ARGUMENTS = {len(interface.inputs)}, RESULTS = {len(interface.results)} }};\n"
        f"enum {{ COUNTS = {len(interface.geometry.counts) if interface.geometry else 0} }};\n\n"
        f"static const struct argument arguments[] = {{\n{rows}{end}}};\n\n"
        f"static const struct argument results[] = {{\n{results}{end}}};\n\n"
    )


_LENT = """\
static void *allocated(size_t size);

/* Memory for an array of a group. Its content means nothing. */
static void *lent(size_t size)
{
    return memset(allocated(size), 0xa5, size);
}

"""


NAMES = frozenset(
    {*re.findall(r"^static .*?(\w+)[(\[;]", _READING + _LENT, re.MULTILINE), "arguments", "results"}
    | {"ARGUMENTS", "COUNTS", "RESULTS", "SECONDS", "HAS_ALARM"}
    | {"call", "check", "found", "status", "v"}
)
"""Names of the harness that an exported function may not have: at file scope, and in `call`. Its
file may not be `check.c`."""


def size_text(interface: Interface, size: Expression) -> str:
    """A size as an expression of the values `v` of a vector."""
    values: dict[str, str] = {}
    for place, each in enumerate(interface.inputs):
        values[each.name] = f"(int64_t)v[{place}].bits"
        if isinstance(each, ArrayArgument):
            values[each.length_name] = f"(int64_t)v[{place}].length"
    return expression_text(size, values.__getitem__)


def _call(interface: Interface) -> str:
    """The function that calls the exported one."""
    before, given, after = "", [], ""
    for place, each in enumerate(interface.arguments):
        if isinstance(each, ArrayArgument) and each.borrowed is not None:
            length = f"(size_t)({size_text(interface, each.borrowed)})"
            before += f"    const size_t n{place} = {length};\n"
            before += f"    unsigned char *m{place} = lent(n{place} * {each.element.bytes});\n"
            given += [f"(void *)m{place}", f"(int64_t)n{place}"]
            after += f"    free(m{place});\n"
        elif isinstance(each, ArrayArgument):
            given.append(f"(void *)v[{place}].data")
            given.append(f"(int64_t)v[{place}].length")
        else:
            name = f"a{place}"
            before += f"    {SCALARS[each.type]} {name};\n"
            before += f"    memcpy(&{name}, &v[{place}].bits, sizeof {name});\n"
            given.append(name)
    for place, result in enumerate(interface.results):
        name = f"r{place}"
        before += f"    {SCALARS[result.type]} {name} = 0;\n"
        after += f"    memcpy(&found[{place}], &{name}, sizeof {name});\n"
        given.append(f"&{name}")
    return (
        f"{_LENT if interface.borrowed else ''}"
        "static int32_t call(const struct value *v, uint64_t *found)\n{\n"
        "    (void)v;\n    (void)found;\n"
        f"{before}    int32_t status = @NAME@({', '.join(given)});\n{after}    return status;\n}}\n"
    )
