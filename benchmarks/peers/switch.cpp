// SPDX-License-Identifier: Apache-2.0
// A switch interpreter of ferryvm's bytecode: one loop, one switch, operands pre-scaled into the
// cells (addresses of statics and of jump targets), ip and sp in registers.
#include "bytecode.hpp"

struct Cell {
    uint64_t opcode;
    union {
        uint64_t literal;
        uint64_t *place;
        uint64_t offset;
        const Cell *target;
    };
};

__attribute__((noinline)) static uint64_t run(const Cell *ip, uint64_t *sp, uint64_t *locals) {
    for (;;) {
        switch (ip->opcode) {
#define HANDLE_BINARY(name, value)           \
    case OP_##name: {                        \
        uint64_t b = *--sp, a = sp[-1];      \
        sp[-1] = (uint64_t)(value);          \
        ip++;                                \
        break;                               \
    }
            BINARY(HANDLE_BINARY)
#define HANDLE_UNARY(name, value)            \
    case OP_##name: {                        \
        uint64_t a = sp[-1];                 \
        sp[-1] = (uint64_t)(value);          \
        ip++;                                \
        break;                               \
    }
            UNARY(HANDLE_UNARY)
        case OP_i64_const:
        case OP_i32_const:
            *sp++ = ip->literal;
            ip++;
            break;
        case OP_static_get:
            *sp++ = *ip->place;
            ip++;
            break;
        case OP_static_set:
            *ip->place = *--sp;
            ip++;
            break;
        case OP_local_get:
            *sp++ = locals[ip->offset];
            ip++;
            break;
        case OP_local_set:
            locals[ip->offset] = *--sp;
            ip++;
            break;
        case OP_drop:
            sp--;
            ip++;
            break;
        case OP_dup:
            *sp = sp[-1];
            sp++;
            ip++;
            break;
        case OP_swap: {
            uint64_t top = sp[-1];
            sp[-1] = sp[-2];
            sp[-2] = top;
            ip++;
            break;
        }
        case OP_jump:
            ip = ip->target;
            break;
        case OP_jump_if:
            ip = *--sp ? ip->target : ip + 1;
            break;
        case OP_jump_unless:
            ip = *--sp ? ip + 1 : ip->target;
            break;
        case OP_enter_jit:
        case OP_leave_jit:
        case OP_nop:
            ip++;
            break;
        case OP_halt:
            return sp[-1];
        default:
            __builtin_unreachable();  // main refused code with other opcodes
        }
    }
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    Image image = load(argv[1]);
    std::vector<Cell> cells(image.code.size());
    for (size_t pc = 0; pc < cells.size(); pc++) {
        const Record &record = image.code[pc];
        if (!known(record.opcode)) unknown(record.opcode);
        Cell &cell = cells[pc];
        cell.opcode = record.opcode;
        cell.literal = record.immediate;
        if (record.opcode == OP_static_get || record.opcode == OP_static_set)
            cell.place = &image.statics[record.immediate];
        if (record.opcode == OP_jump || record.opcode == OP_jump_if || record.opcode == OP_jump_unless)
            cell.target = &cells[record.immediate];
    }
    uint64_t *locals = image.stack.data() + 1;  // a word below, for a program that leaves no result
    double start = now();
    uint64_t result = run(&cells[image.entry], locals + image.locals, locals);
    std::printf("%.9f %" PRId64 "\n", now() - start, (int64_t)result);
}
