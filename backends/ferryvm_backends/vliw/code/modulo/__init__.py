# SPDX-License-Identifier: Apache-2.0
"""Software pipelining: the next round of a loop begins before this one has ended.

    block ─ graph ─> what waits for what, in a round and from round to round
                       │ bound      fewest cycles from one round to the next
                       ▼
                     schedule, table ─> the cycle and unit of each operation of a round
                       │ expand
                       ▼
                     front ─ prologue ─ kernel ⟲       exits ─ ways ─> where they went before

Rau: Iterative Modulo Scheduling, MICRO 1994. Exits stay branches in the kernel, and there is no epilogue:
what is done may be done too early, but never too much of it (Tirumalai, Lee, Schlansker: Parallelization
of Loops with Exits on Pipelined Architectures, Supercomputing 1990).
"""
