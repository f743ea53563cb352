# SPDX-License-Identifier: Apache-2.0
"""Software pipelining by modulo scheduling: iterations of a loop overlap.

    block ─ dependence_graph ─> dependences within an iteration and between iterations
                  │ initiation_interval    lower bounds of the interval
                  ▼
                schedule, reservation ─> the cycle and unit of each operation of an iteration
                  │ expand
                  ▼
                preheader ─ prologue ─ kernel ⟲       exits ─ exit stubs ─> their targets

Rau: Iterative Modulo Scheduling, MICRO 1994. Exits remain branches in the kernel, and there is no
epilogue: operations may be executed too early, but their effects never occur too often (Tirumalai,
Lee, Schlansker: Parallelization of Loops with Exits on Pipelined Architectures, Supercomputing
1990).
"""
