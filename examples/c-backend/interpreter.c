// SPDX-License-Identifier: Apache-2.0
// An interpreter of ferryvm's instruction set, from docs/isa.md and docs/architecture.md alone.
//
// opcodes.h, an enumeration op_i32_const, op_i64_const, ..., is made from docs/isa.md by the
// Makefile. A trap, a growth and a host call leave before anything has changed, so `pc` and `sp`
// then are those before the instruction. Nothing outlives `enter` but what is in the control block
// and in memory.

#include <string.h>
#include <tgmath.h>

#include "machine.h"
#include "opcodes.h"

enum trap {
    UNREACHABLE = 1, INTEGER_DIVIDE_BY_ZERO, INTEGER_OVERFLOW, INVALID_CONVERSION,
    MEMORY_OUT_OF_BOUNDS, INDEX_OUT_OF_BOUNDS, STATIC_OUT_OF_BOUNDS, STACK_OVERFLOW,
    HEAP_EXHAUSTED, UNDEFINED_ELEMENT, SIGNATURE_MISMATCH
};

typedef uint32_t i32;  // as bits; meanings say where they are signed
typedef uint64_t i64;
typedef float f32;
typedef double f64;

static i32 i32_of(uint64_t word) { return (i32)word; }
static i64 i64_of(uint64_t word) { return word; }
static f32 f32_of(uint64_t word) { f32 value; memcpy(&value, &word, 4); return value; }
static f64 f64_of(uint64_t word) { f64 value; memcpy(&value, &word, 8); return value; }

// A float as a word; every NaN is the canonical one, as after all arithmetic.
static uint64_t word_of_f32(f32 value) {
    uint32_t bits = 0x7fc00000;
    if (value == value) memcpy(&bits, &value, 4);
    return bits;
}
static uint64_t word_of_f64(f64 value) {
    uint64_t bits = 0x7ff8000000000000;
    if (value == value) memcpy(&bits, &value, 8);
    return bits;
}

#define OP(NAME, ...) case op_##NAME: { __VA_ARGS__; break; }
#define TOP stack[sp - 1]
#define UNDER stack[sp - 2]
#define PUSH(WORD) uint64_t pushed = (WORD); stack[sp++] = pushed
#define LEAVE_WITH(STATUS) do { status = (STATUS); goto leave; } while (0)
#define TRAP_IF(CONDITION, KIND) if (CONDITION) { control->trap = (KIND); LEAVE_WITH(TRAP); }

// The operands as a (and b) of C type T; the result, a word, replaces them.
#define UNARY(T, WORD) T a = T##_of(TOP); TOP = (WORD)
#define BINARY(T, WORD) CHECKED(T, , WORD)
#define CHECKED(T, CHECKS, WORD) T a = T##_of(UNDER), b = T##_of(TOP); CHECKS; sp--; TOP = (WORD)

// All bytes of the access lie below hp; written so that nothing can wrap.
#define BOUNDS(ADDRESS, LAST) \
    TRAP_IF((ADDRESS) >= (hp > (LAST) ? hp - (LAST) : 0), MEMORY_OUT_OF_BOUNDS)
#define LOAD(NAME, T, C)                                                                         \
    OP(NAME, C value; uint64_t a = TOP; BOUNDS(a, immediate + sizeof value - 1)                  \
        memcpy(&value, heap + a + immediate, sizeof value); TOP = (T)value)
#define STORE(NAME, C)                                                                           \
    OP(NAME, C value = (C)TOP; uint64_t a = UNDER; BOUNDS(a, immediate + sizeof value - 1)       \
        memcpy(heap + a + immediate, &value, sizeof value); sp -= 2)

#define INTEGER(T, S, BITS)                                                                      \
    OP(T##_const, PUSH((T)immediate))                                                            \
    OP(T##_eqz, UNARY(T, a == 0))                                                                \
    OP(T##_eq, BINARY(T, a == b))                                                                \
    OP(T##_ne, BINARY(T, a != b))                                                                \
    OP(T##_lt_s, BINARY(T, (S)a < (S)b))                                                         \
    OP(T##_lt_u, BINARY(T, a < b))                                                               \
    OP(T##_gt_s, BINARY(T, (S)a > (S)b))                                                         \
    OP(T##_gt_u, BINARY(T, a > b))                                                               \
    OP(T##_le_s, BINARY(T, (S)a <= (S)b))                                                        \
    OP(T##_le_u, BINARY(T, a <= b))                                                              \
    OP(T##_ge_s, BINARY(T, (S)a >= (S)b))                                                        \
    OP(T##_ge_u, BINARY(T, a >= b))                                                              \
    OP(T##_clz, UNARY(T, a ? (T)__builtin_clzll(a) - (64 - BITS) : BITS))                        \
    OP(T##_ctz, UNARY(T, a ? (T)__builtin_ctzll(a) : BITS))                                      \
    OP(T##_popcnt, UNARY(T, (T)__builtin_popcountll(a)))                                         \
    OP(T##_add, BINARY(T, (T)(a + b)))                                                           \
    OP(T##_sub, BINARY(T, (T)(a - b)))                                                           \
    OP(T##_mul, BINARY(T, (T)(a * b)))                                                           \
    OP(T##_div_s, CHECKED(T, TRAP_IF(b == 0, INTEGER_DIVIDE_BY_ZERO)                             \
        TRAP_IF(b == (T)-1 && a == (T)1 << (BITS - 1), INTEGER_OVERFLOW), (T)((S)a / (S)b)))     \
    OP(T##_div_u, CHECKED(T, TRAP_IF(b == 0, INTEGER_DIVIDE_BY_ZERO), a / b))                    \
    OP(T##_rem_s, CHECKED(T, TRAP_IF(b == 0, INTEGER_DIVIDE_BY_ZERO),                            \
        b == (T)-1 ? 0 : (T)((S)a % (S)b)))                                                      \
    OP(T##_rem_u, CHECKED(T, TRAP_IF(b == 0, INTEGER_DIVIDE_BY_ZERO), a % b))                    \
    OP(T##_and, BINARY(T, a & b))                                                                \
    OP(T##_or, BINARY(T, a | b))                                                                 \
    OP(T##_xor, BINARY(T, a ^ b))                                                                \
    OP(T##_shl, BINARY(T, (T)(a << (b & (BITS - 1)))))                                           \
    OP(T##_shr_s, BINARY(T, (T)((S)a >> (b & (BITS - 1)))))                                      \
    OP(T##_shr_u, BINARY(T, a >> (b & (BITS - 1))))                                              \
    OP(T##_rotl, BINARY(T, (T)(a << (b & (BITS - 1)) | a >> (-b & (BITS - 1)))))                 \
    OP(T##_rotr, BINARY(T, (T)(a >> (b & (BITS - 1)) | a << (-b & (BITS - 1)))))                 \
    OP(T##_extend8_s, UNARY(T, (T)(S)(int8_t)a))                                                 \
    OP(T##_extend16_s, UNARY(T, (T)(S)(int16_t)a))                                               \
    LOAD(T##_load, T, T)                                                                         \
    LOAD(T##_load8_s, T, int8_t)                                                                 \
    LOAD(T##_load8_u, T, uint8_t)                                                                \
    LOAD(T##_load16_s, T, int16_t)                                                               \
    LOAD(T##_load16_u, T, uint16_t)                                                              \
    STORE(T##_store, T)                                                                          \
    STORE(T##_store8, uint8_t)                                                                   \
    STORE(T##_store16, uint16_t)

#define FLOAT(F, I, SIGN)                                                                        \
    OP(F##_const, PUSH((I)immediate))                                                            \
    OP(F##_eq, BINARY(F, a == b))                                                                \
    OP(F##_ne, BINARY(F, a != b))                                                                \
    OP(F##_lt, BINARY(F, a < b))                                                                 \
    OP(F##_gt, BINARY(F, a > b))                                                                 \
    OP(F##_le, BINARY(F, a <= b))                                                                \
    OP(F##_ge, BINARY(F, a >= b))                                                                \
    OP(F##_abs, UNARY(I, a & ~SIGN))                                                             \
    OP(F##_neg, UNARY(I, a ^ SIGN))                                                              \
    OP(F##_copysign, BINARY(I, (a & ~SIGN) | (b & SIGN)))                                        \
    OP(F##_ceil, UNARY(F, word_of_##F(ceil(a))))                                                 \
    OP(F##_floor, UNARY(F, word_of_##F(floor(a))))                                               \
    OP(F##_trunc, UNARY(F, word_of_##F(trunc(a))))                                               \
    OP(F##_nearest, UNARY(F, word_of_##F(rint(a))))                                              \
    OP(F##_sqrt, UNARY(F, word_of_##F(sqrt(a))))                                                 \
    OP(F##_add, BINARY(F, word_of_##F(a + b)))                                                   \
    OP(F##_sub, BINARY(F, word_of_##F(a - b)))                                                   \
    OP(F##_mul, BINARY(F, word_of_##F(a * b)))                                                   \
    OP(F##_div, BINARY(F, word_of_##F(a / b)))                                                   \
    OP(F##_min, I bits = (I)(UNDER | TOP); BINARY(F, a == b ? bits :                             \
        word_of_##F(a != a ? a : b != b ? b : a < b ? a : b)))                                   \
    OP(F##_max, I bits = (I)(UNDER & TOP); BINARY(F, a == b ? bits :                             \
        word_of_##F(a != a ? a : b != b ? b : a > b ? a : b)))                                   \
    OP(F##_convert_i32_s, UNARY(i32, word_of_##F((F)(int32_t)a)))                                \
    OP(F##_convert_i32_u, UNARY(i32, word_of_##F((F)a)))                                         \
    OP(F##_convert_i64_s, UNARY(i64, word_of_##F((F)(int64_t)a)))                                \
    OP(F##_convert_i64_u, UNARY(i64, word_of_##F((F)a)))                                         \
    LOAD(F##_load, I, I)                                                                         \
    STORE(F##_store, I)

// From float F to integer C, of type I: it fits where LOW and a < HIGH hold; else LEAST or MOST.
#define TRUNCATION(SUFFIX, I, C, F, LOW, HIGH, LEAST, MOST)                          \
    OP(I##_trunc_##SUFFIX, F a = F##_of(TOP); TRAP_IF(a != a, INVALID_CONVERSION)                \
        TRAP_IF(!((LOW) && a < (HIGH)), INTEGER_OVERFLOW); TOP = (I)(C)a)                        \
    OP(I##_trunc_sat_##SUFFIX, UNARY(F,                                                          \
        a != a ? 0 : !(LOW) ? (I)LEAST : a < (HIGH) ? (I)(C)a : (I)MOST))

#define GO_TO(PC) do { next = (PC); moved = true; } while (0)

uint32_t enter(struct control *control, const struct instruction *code, bool counting) {
    uint64_t *stack = (uint64_t *)control->stack;
    uint64_t *statics = (uint64_t *)control->statics;
    unsigned char *heap = (unsigned char *)control->heap;
    const uint64_t *table = (const uint64_t *)control->table;
    const struct function *functions = (const struct function *)control->functions;
    const uint64_t stack_words = (control->stack_end - control->stack) / 8;
    uint64_t pc = control->pc, sp = control->sp, fp = control->fp, hp = control->hp;
    int64_t fuel = control->fuel;
    uint32_t status;

    control->code = (uint64_t)code;
    for (;;) {
        if (counting && fuel <= 0) LEAVE_WITH(FUEL);
        const uint64_t immediate = code[pc].immediate;
        uint64_t next = pc + 1, callee;
        bool moved = false;
        switch (code[pc].opcode) {
            INTEGER(i32, int32_t, 32)
            INTEGER(i64, int64_t, 64)
            OP(i64_extend32_s, UNARY(i64, (i64)(int32_t)a))
            FLOAT(f32, i32, 0x80000000u)
            FLOAT(f64, i64, 0x8000000000000000u)

            OP(local_get, PUSH(stack[fp + immediate]))
            OP(local_set, stack[fp + immediate] = TOP; sp--)
            OP(static_get, PUSH(statics[immediate]))
            OP(static_set, statics[immediate] = TOP; sp--)
            OP(static_load, uint64_t a = TOP;
                TRAP_IF(a >= control->static_count, STATIC_OUT_OF_BOUNDS) TOP = statics[a])
            OP(static_store, uint64_t b = TOP;
                TRAP_IF(b >= control->static_count, STATIC_OUT_OF_BOUNDS)
                statics[b] = UNDER; sp -= 2)
            OP(drop, sp--)
            OP(dup, PUSH(TOP))
            OP(swap, uint64_t a = UNDER; UNDER = TOP; TOP = a)
            OP(select, if (TOP == 0) stack[sp - 3] = UNDER; sp -= 2)

            OP(i32_wrap_i64, UNARY(i32, a))
            OP(i64_extend_i32_s, UNARY(i32, (i64)(int32_t)a))
            OP(i64_extend_i32_u, UNARY(i32, a))
            TRUNCATION(f32_s, i32, int32_t, f32, a >= -0x1p31f, 0x1p31f, INT32_MIN, INT32_MAX)
            TRUNCATION(f32_u, i32, uint32_t, f32, a > -1, 0x1p32f, 0, UINT32_MAX)
            TRUNCATION(f64_s, i32, int32_t, f64, a > -0x1p31 - 1, 0x1p31, INT32_MIN, INT32_MAX)
            TRUNCATION(f64_u, i32, uint32_t, f64, a > -1, 0x1p32, 0, UINT32_MAX)
            TRUNCATION(f32_s, i64, int64_t, f32, a >= -0x1p63f, 0x1p63f, INT64_MIN, INT64_MAX)
            TRUNCATION(f32_u, i64, uint64_t, f32, a > -1, 0x1p64f, 0, UINT64_MAX)
            TRUNCATION(f64_s, i64, int64_t, f64, a >= -0x1p63, 0x1p63, INT64_MIN, INT64_MAX)
            TRUNCATION(f64_u, i64, uint64_t, f64, a > -1, 0x1p64, 0, UINT64_MAX)
            OP(f32_demote_f64, UNARY(f64, word_of_f32((f32)a)))
            OP(f64_promote_f32, UNARY(f32, word_of_f64((f64)a)))
            case op_i32_reinterpret_f32: case op_f32_reinterpret_i32:
            case op_i64_reinterpret_f64: case op_f64_reinterpret_i64: break;

            LOAD(i64_load32_s, i64, int32_t)
            LOAD(i64_load32_u, i64, uint32_t)
            STORE(i64_store32, uint32_t)
            OP(heap_alloc, uint64_t a = TOP;
                TRAP_IF(a > (uint64_t)1 << 48, HEAP_EXHAUSTED)
                uint64_t old = hp, end = hp + ((a + 7) & ~(uint64_t)7);
                if (end > control->heap_capacity) {
                    control->wanted = end;
                    LEAVE_WITH(GROW);
                }
                hp = end;
                TOP = old)
            OP(heap_size, PUSH(hp))
            OP(array_index, CHECKED(i64, TRAP_IF(a >= b, INDEX_OUT_OF_BOUNDS), a))

            OP(jump, GO_TO(immediate))
            OP(jump_if, sp--; if (stack[sp] != 0) GO_TO(immediate))
            OP(jump_unless, sp--; if (stack[sp] == 0) GO_TO(immediate))
            OP(jump_table, sp--; GO_TO(pc + 1 + (stack[sp] < immediate ? stack[sp] : immediate)))
            case op_call:
            case op_call_indirect: {
                uint64_t top = sp;
                callee = immediate;
                if (code[pc].opcode == op_call_indirect) {
                    top--;
                    TRAP_IF(stack[top] >= control->table_size, UNDEFINED_ELEMENT)
                    callee = table[stack[top]];
                    TRAP_IF(functions[callee].signature != immediate, SIGNATURE_MISMATCH)
                }
                const struct function *function = &functions[callee];
                TRAP_IF(top + function->frame > stack_words, STACK_OVERFLOW)
                stack[top] = pc + 1;
                stack[top + 1] = top - fp;
                memset(stack + top + 2, 0, function->locals * 8);
                fp = top;
                sp = top + 2 + function->locals;
                GO_TO(function->entry);
                break;
            }
            case op_return: {
                uint64_t first = fp - (immediate >> 32), results = immediate & 0xffffffff;
                uint64_t distance = stack[fp + 1];
                GO_TO(stack[fp]);
                memmove(stack + first, stack + sp - results, results * 8);
                sp = first + results;
                fp -= distance;
                break;
            }
            OP(host, control->exit_id = (uint32_t)immediate; LEAVE_WITH(HOST))
            case op_enter_jit: case op_leave_jit: case op_nop: break;
            OP(halt, LEAVE_WITH(HALT))
            OP(trap, TRAP_IF(true, UNREACHABLE))
            default: LEAVE_WITH(UNKNOWN);
        }
        pc = next;
        fuel--;
        if (!moved) continue;
        if (__atomic_load_n(&control->interrupt, __ATOMIC_RELAXED)) LEAVE_WITH(INTERRUPTED);
    }

leave:
    control->pc = pc;
    control->sp = sp;
    control->fp = fp;
    control->hp = hp;
    if (counting) control->fuel = fuel;
    control->status = status;
    return status;
}
