# SPDX-License-Identifier: Apache-2.0
"""Constants of the compiler that trade the time it takes for the code it makes.

Each constant states the effect of another value on the kernels of `python -m benchmarks vliw` that
take long to schedule: fir, matmul and sort on the machines single and multi16, and dct on multi16.
They compile in 3.6 s of processor time together; measurements of loops are cycles for an iteration
of the program's loop. Constants without a measurement were not measured individually.
"""

from __future__ import annotations

# --- selection of loops and unroll factors (`modulo.pipeline`, `unroll`) ---------------------

UNROLL_FACTORS = (1, 2, 3, 4, 6, 8)
"""Iterations of the program's loop that are tried together.

With 1 alone dct's inner loop takes 4 instead of 2.25, matmul's 10 instead of 8.67 on single and 8
instead of 7.17 on multi16; without 3, 6 and 8 matmul's take the same.
"""
LARGEST_ITERATION = 320
"""Operations of an iteration that is pipelined."""
SMALL_ITERATION = 64
"""Operations of an iteration that is pipelined however little its iterations would overlap.

With 0 loops of sort take 23.25 instead of 21 and 14.5 instead of 13, matmul's 12.5 instead of 8.67.
"""
MOST_OF_PATH = 0.9
"""Part of its longest path that the bound of a larger iteration may be.

Without this limit 5.8 s, and one of dct's outer loops takes 54 instead of 60.
"""
WORTH_UNROLLING = 0.9
"""More iterations must reduce the bound below this part of it.

With 1 it takes 5.7 s, and no loop takes less.
"""
MISSED_BOUND = 1.05
"""The multiple of the bound that an interval may be before other unroll factors are tried.

If no other factor is tried, 3.4 s, and dct's inner loop takes 3 instead of 2.25.
"""
LARGEST_RETRIED = 160
"""Operations that an iteration of such a larger factor may have.

With 0 as where no other factor is tried.
"""
LONGEST_INTERVAL = 2
"""The multiple of the bound that an interval may be, if an iteration does not take longer."""
LONGER_PART = 16
"""The part by which the next interval is longer that is tried where registers are too few, then by
two of it, by three…"""
LONGER_TRIES = 6
"""Longer intervals that are tried."""
INVARIANT_PART = 0.75
"""Part of the registers that may hold loop invariants.

With 0.4 there is no difference.
"""
PROLOGUE_TRIES = 8
"""The number of schedules tried for a loop whose prologue finds no ports."""
UNROLLED_ITERATIONS, UNROLLED_OPERATIONS = 8, 96
"""Iterations, and operations, of a block that is unrolled but not pipelined."""

# --- modulo scheduling (`modulo.schedule`, `modulo.attempt`) ----------------------------------

INTERVAL_STEP = 32
"""Part of the bound by which the second interval is longer, where that is more than a cycle; then
it is twice as much each time, and when there is a schedule, the steps back are halved.

With 8 it takes 3.2 s, and no loop takes more.
"""
STEPS_AN_OPERATION, STEPS_BESIDES = 2, 200
"""The placements that an attempt may take: so many an operation on average, and so many besides,
since there is time for that with few.

Without those besides 3.0 s; a loop of sort takes 22 instead of 21, one of matmul 9 instead of 8.67.
"""
CLOSE = 1 / 8
"""Part of the operations that an attempt which is close to a schedule has left.

With 1, all attempts being close, 4.4 s, and no loop takes less.
"""
STALLED_STEPS, STALLED_PART = 140, 0.8
"""The placements, at least and as a part of all operations, without there being fewer left
than ever before; after that there will hardly be. For attempts that are close.

With at least 60 it takes 3.2 s, and no loop takes more. Whole programs have schedules that were
found after 118 such steps.
"""
FAR_STALLED_STEPS, FAR_STALLED_PART = 60, 0.3
"""The same for those that are not.

With 100 and 0.5 the whole DCT program takes 1.0003 of the cycles on multi16.
"""
FAR, FAR_LONGER = 0.4, 1.25
"""Part of the operations that an order has left which is far from a schedule, and the multiple of
the interval from which on it is tried again.

Without this the transform in groups of 8 x 8 takes 7,435 placements instead of 5,858; no loop of the
kernels has another schedule.
"""
CYCLES_COMPARED = 8
"""Possible cycles of an operation of which the best is taken.

With 1 it takes 3.1 s, and dct's inner loop 3 instead of 2.25; with 32 it takes 3.9 s, and no loop
takes less.
"""
ROOMY = 0.5
"""Part of a file's registers that a schedule may need without others being looked for."""
TREES = 160
"""Operations of an iteration of which whole expression trees are placed first.

Without this order the rows of the transform in groups of 8 x 8 take 20 and 18 cycles instead of 16,
and 5,834 placements instead of 744. With 1 dct's inner loop takes 2.37 instead of 2.25.
"""
FULL_SLOTS = 0.9
"""Part of the slots that operations take where many more orders are tried.

Without these orders the loop of fir takes 57 instead of 55 on single.
"""
MOST_STEPS = 20_000
"""The placements that making a schedule shorter may take."""
REGION_PLACEMENTS = 12_000
"""The placements for all loops of a region. Each loop may take half of those that are left, the last
one all of them; one for which no schedule was found by then is not pipelined.

Whole programs of the benchmark take 7,561 at most on multi16, and as many without a limit. With
equal shares loops of dct take 54 and 94 instead of 2.25 and 18.
"""
PREHEADER_CYCLES = 64
"""Cycles that a move of the preheader is tried in."""
FORWARDED_EARLIER = 24
"""Cycles by which a value of the first iterations is brought to a unit earlier, at most."""

# --- spilling of loop invariants (`modulo.spill`) ---------------------------------------------

INVARIANT_PORTS = 0.3
"""Part of the read ports, in an interval, that invariants may take.

With 1 it takes 5.7 s; fir's loop takes 5.33 instead of 4, those of dct 3.5 and 30 instead of 2.25
and 18.
"""
BUSY_LOADS = 0.95
"""Part of the units for loads, and of slots, that may be taken for that to be fewer.

With 0.6 it takes 4.7 s; fir's loop takes 5.33 instead of 4, dct's 3 instead of 2.25.
"""

# --- if-conversion (`if_conversion`) -----------------------------------------------------------

CONVERTED_OPERATIONS = 24
"""Operations of a side of a condition."""
CONVERTED_CYCLES = 6
"""Cycles that both sides may use of the scarcest resource, units or slots, beyond the delay slots
of their branch."""

# --- straight-line code (`dependence`, `schedule`, `register_allocation`) ----------------------

SPILL_AHEAD = 20
"""Operations of its block that a load of a spilled word may overtake."""
CROWDED_WINDOW = 64
"""Operations of a block with too few registers among which one is chosen at first; then half as
many each time."""
LIST_PLACEMENTS = 200_000
"""Operations that are placed in blocks that are not pipelined loops, in all schedules of a region
for which registers are looked for.

k-means takes the most of the kernels with groups on multi16, 11,852; 41,885 when each exit wrote all of
its words.
"""
ALLOCATION_TRIES = 64
"""Schedules of all blocks for which registers are looked for."""

# --- load forwarding (`passes`) ----------------------------------------------------------------

LOOP_REGISTERS = 16
"""Registers that a loop takes in any case."""
FORWARDING_PART = 8
"""The limit of forwarded values of a loop as a part of its other operations: one in so many."""
