// SPDX-License-Identifier: Apache-2.0
// A direct-threaded interpreter of ferryvm's bytecode: a cell holds its handler's address and its
// pre-scaled operand, every handler ends in its own indirect jump, ip and sp are in registers.
#include "bytecode.hpp"

struct Cell {
    const void *handler;
    union {
        uint64_t literal;
        uint64_t *place;
        uint64_t offset;
        const Cell *target;
    };
};

// Called once with `handlers` to learn the addresses of the labels, then to run.
__attribute__((noinline)) static uint64_t run(const Cell *ip, uint64_t *sp, uint64_t *locals,
                                              const void **handlers) {
    if (handlers) {
#define LEARN(name, ...) handlers[OP_##name] = &&name;
        BINARY(LEARN) UNARY(LEARN) OTHER(LEARN) return 0;
    }
#define NEXT goto *ip->handler
    NEXT;
#define HANDLE_BINARY(name, value)      \
    name : {                            \
        uint64_t b = *--sp, a = sp[-1]; \
        sp[-1] = (uint64_t)(value);     \
        ip++;                           \
        NEXT;                           \
    }
    BINARY(HANDLE_BINARY)
#define HANDLE_UNARY(name, value)   \
    name : {                        \
        uint64_t a = sp[-1];        \
        sp[-1] = (uint64_t)(value); \
        ip++;                       \
        NEXT;                       \
    }
    UNARY(HANDLE_UNARY)
i64_const:
i32_const:
    *sp++ = ip->literal;
    ip++;
    NEXT;
static_get:
    *sp++ = *ip->place;
    ip++;
    NEXT;
static_set:
    *ip->place = *--sp;
    ip++;
    NEXT;
local_get:
    *sp++ = locals[ip->offset];
    ip++;
    NEXT;
local_set:
    locals[ip->offset] = *--sp;
    ip++;
    NEXT;
drop:
    sp--;
    ip++;
    NEXT;
dup:
    *sp = sp[-1];
    sp++;
    ip++;
    NEXT;
swap : {
    uint64_t top = sp[-1];
    sp[-1] = sp[-2];
    sp[-2] = top;
    ip++;
    NEXT;
}
jump:
    ip = ip->target;
    NEXT;
jump_if:
    if (*--sp)
        ip = ip->target;
    else
        ip++;
    NEXT;
jump_unless:
    if (*--sp)
        ip++;
    else
        ip = ip->target;
    NEXT;
enter_jit:
leave_jit:
nop:
    ip++;
    NEXT;
halt:
    return sp[-1];
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    Image image = load(argv[1]);
    std::vector<const void *> handlers(OPCODES);
    run(nullptr, nullptr, nullptr, handlers.data());
    std::vector<Cell> cells(image.code.size());
    for (size_t pc = 0; pc < cells.size(); pc++) {
        const Record &record = image.code[pc];
        if (!known(record.opcode)) unknown(record.opcode);
        Cell &cell = cells[pc];
        cell.handler = handlers[record.opcode];
        cell.literal = record.immediate;
        if (record.opcode == OP_static_get || record.opcode == OP_static_set)
            cell.place = &image.statics[record.immediate];
        if (record.opcode == OP_jump || record.opcode == OP_jump_if || record.opcode == OP_jump_unless)
            cell.target = &cells[record.immediate];
    }
    uint64_t *locals = image.stack.data() + 1;  // a word below, for a program that leaves no result
    double start = now();
    uint64_t result = run(&cells[image.entry], locals + image.locals, locals, nullptr);
    std::printf("%.9f %" PRId64 "\n", now() - start, (int64_t)result);
}
