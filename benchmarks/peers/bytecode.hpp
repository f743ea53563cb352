// SPDX-License-Identifier: Apache-2.0
// What the two C++ interpreters share: the code file, and the meanings of the instructions that the
// loop programs use. Opcodes come from opcodes.h, which the harness writes from the instruction table.
//
//     code file:  word: number of statics │ word: entry pc │ word: locals of main │
//                 statics' first bits, a word each │ instructions, 16 bytes each
#pragma once
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <vector>

#include "opcodes.h"

// X(name, value of the result); a is the deeper operand.
#define BINARY(X)                       \
    X(i64_add, a + b)                   \
    X(i64_sub, a - b)                   \
    X(i64_mul, a *b)                    \
    X(i64_and, a &b)                    \
    X(i64_or, a | b)                    \
    X(i64_xor, a ^ b)                   \
    X(i64_shl, a << (b & 63))           \
    X(i64_shr_u, a >> (b & 63))         \
    X(i64_eq, a == b)                   \
    X(i64_ne, a != b)                   \
    X(i64_lt_u, a < b)                  \
    X(i64_lt_s, (int64_t)a < (int64_t)b) \
    X(i64_gt_s, (int64_t)a > (int64_t)b) \
    X(i64_le_s, (int64_t)a <= (int64_t)b) \
    X(i64_ge_s, (int64_t)a >= (int64_t)b) \
    X(i32_and, a &b)                    \
    X(i32_or, a | b)                    \
    X(i32_eq, a == b)                   \
    X(i32_ne, a != b)

#define UNARY(X)       \
    X(i64_eqz, a == 0) \
    X(i32_eqz, a == 0)

#define OTHER(X)                                                          \
    X(i64_const) X(i32_const) X(static_get) X(static_set) X(local_get) X(local_set) X(drop) X(dup) \
    X(swap) X(jump) X(jump_if) X(jump_unless) X(enter_jit) X(leave_jit) X(nop) X(halt)

struct Record {
    uint16_t opcode;
    uint8_t zero[6];
    uint64_t immediate;
};
static_assert(sizeof(Record) == 16, "an instruction is 16 bytes");

struct Image {
    std::vector<uint64_t> statics, stack;
    uint64_t entry, locals;
    std::vector<Record> code;
};

inline Image load(const char *path) {
    std::ifstream file(path, std::ios::binary);
    std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
    if (bytes.size() < 24) {
        std::fprintf(stderr, "%s: not a code file\n", path);
        std::exit(2);
    }
    auto words = reinterpret_cast<const uint64_t *>(bytes.data());
    Image image;
    image.entry = words[1];
    image.locals = words[2];
    image.statics.assign(words + 3, words + 3 + words[0]);
    auto records = reinterpret_cast<const Record *>(words + 3 + words[0]);
    image.code.assign(records, reinterpret_cast<const Record *>(bytes.data() + bytes.size()));
    image.stack.resize(1 << 16);
    return image;
}

inline double now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

[[noreturn]] inline void unknown(uint64_t opcode) {
    std::fprintf(stderr, "no handler for opcode %" PRIu64 "\n", opcode);
    std::exit(3);
}

inline bool known(uint64_t opcode) {
    switch (opcode) {
#define KNOWN(name, ...) case OP_##name:
        BINARY(KNOWN) UNARY(KNOWN) OTHER(KNOWN) return true;
#undef KNOWN
    }
    return false;
}
