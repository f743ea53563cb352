# SPDX-License-Identifier: Apache-2.0
"""Software pipelining: the next iteration of a loop begins before this one has ended.

    block ─ graph ─> what waits for what, in an iteration and from iteration to iteration
                       │ bound      fewest cycles from one iteration to the next
                       ▼
                     schedule, table ─> the cycle and unit of each operation of an iteration
                       │ expand
                       ▼
                     front ─ prologue ─ kernel ⟲       exits ─ ways ─> where they went before

Rau: Iterative Modulo Scheduling, MICRO 1994. Exits stay branches in the kernel, and there is no epilogue:
what is done may be done too early, but never too much of it (Tirumalai, Lee, Schlansker: Parallelization
of Loops with Exits on Pipelined Architectures, Supercomputing 1990).
"""
