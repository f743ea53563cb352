# SPDX-License-Identifier: Apache-2.0
"""Constants of the compiler that trade the time it takes for the code it makes."""

from __future__ import annotations

# --- selection of loops and unroll factors (`modulo.pipeline`, `unroll`) ---------------------

UNROLL_FACTORS = (1, 2, 3, 4, 6, 8)
"""Iterations of the program's loop that are tried together."""
LARGEST_ITERATION = 320
"""Operations of an iteration that is pipelined."""
SMALL_ITERATION = 64
"""Operations of an iteration that is pipelined however little its iterations would overlap."""
MOST_OF_PATH = 0.9
"""Part of its longest path that the bound of a larger iteration may be."""
WORTH_UNROLLING = 0.9
"""More iterations have to bring the bound down to less than this part of it."""
MISSED_BOUND = 1.05
"""How many times the bound an interval may be before other unroll factors are tried."""
LARGEST_RETRIED = 160
"""Operations that an iteration of such a larger factor may have."""
LONGEST_INTERVAL = 2
"""How many times the bound an interval may be, if an iteration does not take longer."""
LONGER_PART = 16
"""Where registers are too few the next interval that is tried is longer by this part, then by two
of it, by three…"""
LONGER_TRIES = 6
"""Longer intervals that are tried."""
INVARIANT_PART = 0.75
"""Part of the registers that may hold loop invariants."""
PROLOGUE_TRIES = 8
"""Schedules that are made of a loop whose prologue finds no ports."""
UNROLLED_ITERATIONS, UNROLLED_OPERATIONS = 8, 96
"""Iterations, and operations, of a block that is unrolled but not pipelined."""

# --- modulo scheduling (`modulo.schedule`, `modulo.attempt`) ----------------------------------

INTERVAL_STEP = 32
"""Part of the bound by which the second interval is longer, where that is more than a cycle; then
it is twice as much each time, and when there is a schedule, the steps back are halved."""
STEPS_AN_OPERATION, STEPS_BESIDES = 2, 200
"""How often operations may be placed in an attempt: so often each on average, and so often besides,
since there is time for that with few."""
CLOSE = 1 / 8
"""Part of the operations that an attempt which is close to a schedule has left."""
STALLED_STEPS, STALLED_PART = 140, 0.8
"""How often operations are placed, at least and as a part of all, without there being fewer left
than ever before; after that there will hardly be. For attempts that are close."""
FAR_STALLED_STEPS, FAR_STALLED_PART = 60, 0.3
"""The same for those that are not."""
CYCLES_COMPARED = 8
"""Possible cycles of an operation of which the best is taken."""
ROOMY = 0.5
"""Part of a file's registers that a schedule may need without others being looked for."""
FULL_SLOTS = 0.9
"""Part of the slots that operations take where many more orders are tried."""
MOST_STEPS = 20_000
"""How often operations may be placed while a schedule is made shorter."""
PREHEADER_CYCLES = 64
"""Cycles that a move of the preheader is tried in."""
FORWARDED_EARLIER = 24
"""Cycles by which a value of the first iterations is brought to a unit earlier, at most."""

# --- spilling of loop invariants (`modulo.spill`) ---------------------------------------------

INVARIANT_PORTS = 0.3
"""Part of the read ports, in an interval, that invariants may take."""
BUSY_LOADS = 0.95
"""Part of the units for loads, and of slots, that may be taken for that to be fewer."""

# --- if-conversion (`if_conversion`) -----------------------------------------------------------

CONVERTED_OPERATIONS = 24
"""Operations of a side of a condition."""
CONVERTED_CYCLES = 6
"""Cycles that both sides may take of what there is least of, units or slots, beyond the delay slots
that their branch takes."""

# --- straight-line code (`dependence`, `schedule`, `register_allocation`) ----------------------

SPILL_AHEAD = 20
"""Operations of its block that a load of a spilled word may overtake."""
CROWDED_WINDOW = 64
"""Operations of a block with too few registers among which one is chosen at first; then half as
many each time."""
ALLOCATION_TRIES = 64
"""Schedules of all blocks for which registers are looked for."""

# --- load forwarding (`passes`) ----------------------------------------------------------------

LOOP_REGISTERS = 16
"""Registers that a loop takes in any case."""
FORWARDING_PART = 8
"""Part of the others for what it retains of what it has loaded: one in so many."""
