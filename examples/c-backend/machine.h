// SPDX-License-Identifier: Apache-2.0
// What a backend and its caller share: docs/architecture.md in C. For little-endian machines.

#ifndef FERRY_MACHINE_H
#define FERRY_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

enum status { RUNNING, HALT, LEAVE, HOST, TRAP, GUARD, GROW, INTERRUPTED, FUEL, HOT, UNKNOWN };

// Registers, as word numbers and byte offsets; from `interrupt` on, what binds it to this process.
struct control {
    uint32_t abi_version, status, trap, exit_id;
    uint64_t pc, sp, fp, hp;
    int64_t fuel;
    uint64_t instructions;
    uint32_t interrupt, reserved;
    uint64_t wanted, heap_capacity, heap_limit, static_count, table_size;
    uint64_t statics, stack, stack_end, heap, code, functions, table;
    uint64_t counters, entries, originals, scratch[3];  // for cells and compiled code
    uint64_t host_stack, natives;
    uint64_t objects, object_top, object_end;  // no objects here
    uint64_t prepared, prepared_bytes, wanted_type, types;
};
_Static_assert(sizeof(struct control) == 288, "the control block has 288 bytes");

struct function {
    uint64_t entry, parameters, locals, frame, signature, unused[3];
};

struct instruction {
    uint16_t opcode, zero[3];
    uint64_t immediate;
};

// Runs from control->pc until control has to come back, and says why. UNKNOWN is no status of
// ferryvm: it stands for an instruction that this interpreter does not have.
uint32_t enter(struct control *control, const struct instruction *code, bool counting);

#endif
