# SPDX-License-Identifier: Apache-2.0
"""Parallel regions: the items of a launch that wait at barriers, as loops over all items.

    for each item:                       for each item: [A]  ─┐ contexts: what lives across
       A ─ barrier 1 ─ B ─ end     ─>    for each item: [B]  ─┘ the barrier, by item

A *parallel region* is the code from the entry of the items' function, or from a barrier, to the
barriers that come next, or to the end; it is a copy of these blocks, so an item that comes to a
barrier on several paths, or in a loop, needs nothing but to go on in the region of that barrier.
All items run through a region, in their order, before the next one begins: that of the barrier at
which all wait. (Jääskeläinen et al.: pocl: A Performance-Portable OpenCL Implementation, 2015,
section 4, forms them so; there the barriers of loops get implicit ones, and conditional ones are
duplicated, so that each region has one end. Here regions may have several ends, and the first
item's decides, as long as all agree.)

    launch       the loop of a launch whose items wait, its blocks split at barriers
    home         where values live: shared by all items, computed anew, or in a context array
    copy         the copy of a region's blocks, in SSA form
    group_builder, item_loop   the choice in front of regions, and the loop over items of each
    form         control from one region to the next
    record       what an exit in the middle has to know to write the launch's record
    writer       the function that writes it, as region IR

Nothing of this is target-dependent. A target lowers `context_load` and `context_store`, and runs
the writer at exits whose state has a `Phase`.
"""
