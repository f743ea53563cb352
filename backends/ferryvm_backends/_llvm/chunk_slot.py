# SPDX-License-Identifier: Apache-2.0
"""Native functions that put items into slots of their thread, see `ferryvm.machine.item_batch`: one
item, or each lane of a vector that has left.

Text of LLVM, a part of that in `ferryvm_backends._llvm.chunk`, with functions that write its
accesses.
"""

from __future__ import annotations

import ctypes

from ferryvm.machine import item_batch, lane
from ferryvm.machine.chunk import ItemRange, RangeWorker
from ferryvm.machine.item_batch import SLOT_WORDS


def field_at(structure: type[ctypes.Structure], field: str, base: str) -> str:
    """A pointer to a field."""
    return f"getelementptr i8, ptr %{base}, i64 {getattr(structure, field).offset}"


def get(name: str, structure: type[ctypes.Structure], base: str, kind: str = "i64") -> str:
    """Load a field, which has the name of the value without what stands behind a dot."""
    field = name.partition(".")[0]
    return (
        f"%{name}.at = {field_at(structure, field, base)}\n  %{name} = load {kind}, ptr %{name}.at"
    )


def put(name: str, value: str, structure: type[ctypes.Structure], base: str) -> str:
    """Store into a field; `name` as for `get`."""
    field = name.partition(".")[0]
    return f"%{name}.at = {field_at(structure, field, base)}\n  store i64 {value}, ptr %{name}.at"


def _put_word(name: str, value: str) -> str:
    """Store a word of the head of the slot at %s."""
    at = f"getelementptr i64, ptr %s, i64 {getattr(item_batch, name)}"
    return f"%{name}.at = {at}\n  store i64 {value}, ptr %{name}.at"


def _lane_word(name: str, row: str, lane_: str) -> str:
    """Load a lane's word of a row of the buffer."""
    return "\n  ".join(
        (
            f"%{name}.row = mul i64 %lane_count, {getattr(lane, row)}",
            f"%{name}.column = add i64 %{name}.row, %{lane_}",
            f"%{name}.at = getelementptr i64, ptr %buffer, i64 %{name}.column",
            f"%{name} = load i64, ptr %{name}.at",
        )
    )


SLOTS = f"""
define internal ptr @new_slot(ptr %w, i64 %item, i64 %pc, i64 %frame, i64 %size) nounwind {{
  {get("slot", RangeWorker, "w")}
  {get("slot_end", RangeWorker, "w")}
  {get("entry", RangeWorker, "w")}
  {get("entry_end", RangeWorker, "w")}
  {get("pc_offset", RangeWorker, "w")}
  %words = add i64 %size, {SLOT_WORDS}
  %bytes = shl i64 %words, 3
  %after = add i64 %slot, %bytes
  %fits = icmp ule i64 %after, %slot_end
  %is.free = icmp ult i64 %entry, %entry_end
  %is.possible = and i1 %fits, %is.free
  br i1 %is.possible, label %fill, label %full
full:
  ret ptr null
fill:
  %s = inttoptr i64 %slot to ptr
  {_put_word("ITEM", "%item")}
  {_put_word("PC", "%pc")}
  {_put_word("FRAME", "%frame")}
  {_put_word("SIZE", "%size")}
  {_put_word("STATUS", "0")}
  %entry.here = inttoptr i64 %entry to ptr
  store i64 %slot, ptr %entry.here
  %pc.there = getelementptr i8, ptr %entry.here, i64 %pc_offset
  store i64 %pc, ptr %pc.there
  %entry.next = add i64 %entry, 8
  store i64 %after, ptr %slot.at
  store i64 %entry.next, ptr %entry.at
  %first = getelementptr i64, ptr %s, i64 {SLOT_WORDS}
  ret ptr %first
}}

define internal i1 @suspend_lanes(ptr %w, ptr %r) nounwind {{
  {get("buffer", RangeWorker, "w", "ptr")}
  {get("slot", RangeWorker, "w")}
  {get("slot_end", RangeWorker, "w")}
  {get("entry", RangeWorker, "w")}
  {get("entry_end", RangeWorker, "w")}
  {get("item", RangeWorker, "w")}
  {get("lane_count", ItemRange, "r")}
  {get("lane_rows", ItemRange, "r")}
  %start = sub i64 %item, %lane_count
  %mask = load i64, ptr %buffer
  %largest = add i64 %lane_rows, {SLOT_WORDS}
  %all.words = mul i64 %largest, %lane_count
  %all.bytes = shl i64 %all.words, 3
  %after = add i64 %slot, %all.bytes
  %entries = shl i64 %lane_count, 3
  %entry.after = add i64 %entry, %entries
  %fits = icmp ule i64 %after, %slot_end
  %is.free = icmp ule i64 %entry.after, %entry_end
  %is.possible = and i1 %fits, %is.free
  br i1 %is.possible, label %look, label %no
no:
  ret i1 false
look:
  %seen = phi i64 [ 0, %0 ], [ %seen.next, %look.next ]
  %is.seen = icmp slt i64 %seen, %lane_count
  br i1 %is.seen, label %ask, label %each
ask:
  %ask.bits = lshr i64 %mask, %seen
  %ask.left = trunc i64 %ask.bits to i1
  {_lane_word("stops", "STOPS", "seen")}
  %is.stop = icmp ne i64 %stops, 0
  %is.stopping = and i1 %ask.left, %is.stop
  br i1 %is.stopping, label %no, label %look.next
look.next:
  %seen.next = add i64 %seen, 1
  br label %look
each:
  %lane = phi i64 [ 0, %look ], [ %lane.next, %lane.done ]
  %is.more = icmp slt i64 %lane, %lane_count
  br i1 %is.more, label %one, label %all
one:
  %bits = lshr i64 %mask, %lane
  %is.left = trunc i64 %bits to i1
  br i1 %is.left, label %put, label %lane.done
put:
  {_lane_word("pc", "PC", "lane")}
  {_lane_word("frame", "FRAME", "lane")}
  {_lane_word("length", "LENGTH", "lane")}
  %number = add i64 %start, %lane
  %to = call ptr @new_slot(ptr %w, i64 %number, i64 %pc, i64 %frame, i64 %length)
  br label %copy
copy:
  %n = phi i64 [ 0, %put ], [ %n.next, %copy.word ]
  %is.word = icmp slt i64 %n, %length
  br i1 %is.word, label %copy.word, label %lane.done
copy.word:
  %row = add i64 %n, {lane.WORDS}
  %row.start = mul i64 %row, %lane_count
  %column = add i64 %row.start, %lane
  %word.at = getelementptr i64, ptr %buffer, i64 %column
  %word = load i64, ptr %word.at
  %to.at = getelementptr i64, ptr %to, i64 %n
  store i64 %word, ptr %to.at
  %n.next = add i64 %n, 1
  br label %copy
lane.done:
  %lane.next = add i64 %lane, 1
  br label %each
all:
  ret i1 true
}}
"""
"""The functions `new_slot` and `suspend_lanes`."""
