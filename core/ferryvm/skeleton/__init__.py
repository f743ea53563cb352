# SPDX-License-Identifier: Apache-2.0
"""Skeletons: functions of a program that are generated for map, reduce and scan.

    (reduce + xs)  ──>  call "reduce add f64[]"  ──>  launches of "reduce add f64[]: block"

A skeleton (Cole 1989) is a pattern of parallel computation with a function to fill in. Here it
becomes ordinary functions of the program, whose work is in launches. So there is no instruction for
it: every backend runs it, and its order of operations, which is a function of the number of
elements alone, gives the same bits everywhere. The alternative, an instruction that reduces, would
have that order once more in each backend. docs/parallel.md states the order.

The builder and Skiff generate the functions of each operation and element kind once in a program.
"""

from __future__ import annotations
