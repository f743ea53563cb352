# SPDX-License-Identifier: Apache-2.0
"""Loops of the region IR: one description of them, and the analyses that loop passes stand on.

    natural ─> preheader                   the loops of a body; blocks in front of them
       ├────> induction ─> affine          induction variables, trip counts; affine expressions
       ├────> clone                        copies of a loop beside it, or of its iterations
       ├────> poll                         what looks at the interrupt flag cost
       └────> iteration_space ─> runtime_check        checks in front of a nest that imply its own
                                  (access: the bytes of each object that the nest accesses)

A pass asks `natural.find_loops` for loops after each change of blocks or edges.
"""
