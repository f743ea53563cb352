# SPDX-License-Identifier: Apache-2.0
"""The native functions by which threads run the chunks of a launch, see `ferryvm.machine.chunk`.

    launch ─> begin, wake, resume          resume: take a chunk ─> lanes ─> scalar code ─┐
    serve  ─> wait, begin, wake, resume              ▲                                   │
                                                     └───────────────────────────────────┘

They are the same for all regions, which they call by address.
"""

from __future__ import annotations

import ctypes
import functools

from ferryvm.machine import item_batch, lane
from ferryvm.machine.chunk import (
    CLOCK,
    ChunkLoop,
    ItemRange,
    Outcome,
    ParkedThread,
    RangeWorker,
)
from ferryvm.machine.control import ControlBlock, Status
from ferryvm.machine.item_batch import SLOT_WORDS
from ferryvm_backends._llvm.codegen import ObjectCode
from ferryvm_backends._llvm.passes import Pipeline, improve
from ferryvm_backends.llvm.native import emitted, parsed_text


def _at(structure: type[ctypes.Structure], field: str, base: str) -> str:
    """A pointer to a field."""
    return f"getelementptr i8, ptr %{base}, i64 {getattr(structure, field).offset}"


def _get(name: str, structure: type[ctypes.Structure], base: str, kind: str = "i64") -> str:
    """Load a field, which has the name of the value without what stands behind a dot."""
    field = name.partition(".")[0]
    return f"%{name}.at = {_at(structure, field, base)}\n  %{name} = load {kind}, ptr %{name}.at"


def _set(name: str, value: str, structure: type[ctypes.Structure], base: str) -> str:
    """Store into a field; `name` as for `_get`."""
    field = name.partition(".")[0]
    return f"%{name}.at = {_at(structure, field, base)}\n  store i64 {value}, ptr %{name}.at"


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


_TEXT = f"""
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i64 @llvm.smin.i64(i64, i64)

define internal i64 @now(ptr %r) nounwind {{
  %time = alloca [2 x i64]
  {_get("clock", ItemRange, "r", "ptr")}
  call i32 %clock(i32 {CLOCK}, ptr %time)
  %seconds = load i64, ptr %time
  %part = {"getelementptr i8, ptr %time, i64 8"}
  %rest = load i64, ptr %part
  %whole = mul i64 %seconds, 1000000000
  %found = add i64 %whole, %rest
  ret i64 %found
}}

define internal void @wake(ptr %r, i64 %number) nounwind {{
  {_get("helper_count", ItemRange, "r")}
  {_get("helpers", ItemRange, "r", "ptr")}
  {_get("release", ItemRange, "r", "ptr")}
  %twice = shl i64 %number, 1
  %last = add i64 %twice, 2
  br label %next
next:
  %child = phi i64 [ %twice, %0 ], [ %one, %wake ]
  %one = add i64 %child, 1
  %is.child = icmp sle i64 %one, %last
  %is.there = icmp sle i64 %one, %helper_count
  %goes.on = and i1 %is.child, %is.there
  br i1 %goes.on, label %wake, label %done
wake:
  %where = getelementptr ptr, ptr %helpers, i64 %child
  %p = load ptr, ptr %where
  {_get("lock", ParkedThread, "p", "ptr")}
  call void %release(ptr %lock)
  br label %next
done:
  ret void
}}

define internal void @begin(ptr %w, ptr %r, i64 %floor) nounwind {{
  {_get("control", RangeWorker, "w", "ptr")}
  {_get("template", ItemRange, "r", "ptr")}
  call void @llvm.memcpy.p0.p0.i64(ptr %control, ptr %template, i64 {ctypes.sizeof(ControlBlock)}, i1 false)
  {_get("stack", RangeWorker, "w")}
  {_get("stack_end", RangeWorker, "w")}
  {_set("stack.own", "%stack", ControlBlock, "control")}
  {_set("stack_end.own", "%stack_end", ControlBlock, "control")}
  {_get("frame", ItemRange, "r", "ptr")}
  {_get("frame_offset", ItemRange, "r")}
  {_get("frame_bytes", ItemRange, "r")}
  %bottom = inttoptr i64 %stack to ptr
  %to = getelementptr i8, ptr %bottom, i64 %frame_offset
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %frame, i64 %frame_bytes, i1 false)
  %is.own = icmp eq i64 %floor, -1
  br i1 %is.own, label %done, label %other
other:
  {_set("host_stack", "%floor", ControlBlock, "control")}
  br label %done
done:
  ret void
}}

define internal i64 @revoke(ptr %r) nounwind {{
  {_get("helper_count", ItemRange, "r")}
  {_get("helpers", ItemRange, "r", "ptr")}
  {_get("workers", ItemRange, "r", "ptr")}
  br label %look
look:
  %number = phi i64 [ 0, %0 ], [ %following, %looked ]
  %count = phi i64 [ 0, %0 ], [ %count.now, %looked ]
  %following = add i64 %number, 1
  %is.there = icmp slt i64 %number, %helper_count
  br i1 %is.there, label %try, label %passed
try:
  %where = getelementptr ptr, ptr %helpers, i64 %number
  %p = load ptr, ptr %where
  %worker.at = {_at(ParkedThread, "worker", "p")}
  %old = atomicrmw xchg ptr %worker.at, i64 0 seq_cst, align 8
  %is.taken = icmp eq i64 %old, 0
  br i1 %is.taken, label %looked, label %mark
mark:
  %marked = inttoptr i64 %old to ptr
  {_set("status", "-1", RangeWorker, "marked")}
  %count.more = add i64 %count, 1
  br label %looked
looked:
  %count.now = phi i64 [ %count, %try ], [ %count.more, %mark ]
  br label %look
passed:
  %second = phi i64 [ 1, %look ], [ %later, %going ]
  %later = add i64 %second, 1
  %is.more = icmp sle i64 %second, %helper_count
  br i1 %is.more, label %see, label %done
see:
  %distance = mul i64 %second, {ctypes.sizeof(RangeWorker)}
  %w = getelementptr i8, ptr %workers, i64 %distance
  {_get("status.now", RangeWorker, "w")}
  %is.revoked = icmp eq i64 %status.now, -1
  br i1 %is.revoked, label %send, label %going
send:
  call void @wake(ptr %r, i64 %second)
  br label %going
going:
  br label %passed
done:
  ret i64 %count
}}

define internal ptr @new_slot(ptr %w, i64 %item, i64 %pc, i64 %frame, i64 %size) nounwind {{
  {_get("slot", RangeWorker, "w")}
  {_get("slot_end", RangeWorker, "w")}
  {_get("entry", RangeWorker, "w")}
  {_get("entry_end", RangeWorker, "w")}
  {_get("pc_offset", RangeWorker, "w")}
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
  {_get("buffer", RangeWorker, "w", "ptr")}
  {_get("slot", RangeWorker, "w")}
  {_get("slot_end", RangeWorker, "w")}
  {_get("entry", RangeWorker, "w")}
  {_get("entry_end", RangeWorker, "w")}
  {_get("item", RangeWorker, "w")}
  {_get("lane_count", ItemRange, "r")}
  {_get("lane_rows", ItemRange, "r")}
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

define i64 @ferry_end(ptr %w) nounwind {{
  {_get("range", RangeWorker, "w", "ptr")}
  {_get("release", ItemRange, "range", "ptr")}
  {_get("bell", ItemRange, "range", "ptr")}
  {_get("limit", ItemRange, "range")}
  {_get("number", RangeWorker, "w")}
  %running = {_at(ItemRange, "running", "range")}
  %is.first = icmp eq i64 %number, 0
  br i1 %is.first, label %first, label %count
first:
  %revoked = call i64 @revoke(ptr %range)
  br label %count
count:
  %others = phi i64 [ 0, %0 ], [ %revoked, %first ]
  %ending = add i64 %others, 1
  %threads = atomicrmw sub ptr %running, i64 %ending seq_cst, align 8
  %is.last = icmp eq i64 %threads, %ending
  br i1 %is.last, label %last, label %ended
last:
  %is.left.at = {_at(ItemRange, "is_left", "range")}
  %is.left = load atomic i64, ptr %is.left.at seq_cst, align 8
  %next.at = {_at(ItemRange, "next", "range")}
  %next = load atomic i64, ptr %next.at seq_cst, align 8
  %nothing = icmp eq i64 %is.left, 0
  %all = icmp sge i64 %next, %limit
  %is.whole = and i1 %nothing, %all
  br i1 %is.whole, label %whole, label %part
whole:
  {_get("operand", ItemRange, "range", "ptr")}
  store i64 %limit, ptr %operand
  %done.at = {_at(ItemRange, "is_done", "range")}
  store atomic i64 1, ptr %done.at seq_cst, align 8
  call void %release(ptr %bell)
  br label %ended
ended:
  ret i64 {Outcome.ENDED}
part:
  ret i64 {Outcome.LAST}
}}

define i64 @ferry_resume(ptr %w) nounwind {{
  {_get("range", RangeWorker, "w", "ptr")}
  {_get("control", RangeWorker, "w", "ptr")}
  {_get("stack", RangeWorker, "w")}
  {_get("buffer", RangeWorker, "w", "ptr")}
  {_get("size", ItemRange, "range")}
  {_get("limit", ItemRange, "range")}
  {_get("pc", ItemRange, "range")}
  {_get("last_pc", ItemRange, "range")}
  {_get("sp", ItemRange, "range")}
  {_get("fp", ItemRange, "range")}
  {_get("entry", ItemRange, "range", "ptr")}
  {_get("lanes", ItemRange, "range", "ptr")}
  %next.at = {_at(ItemRange, "next", "range")}
  %past.at = {_at(ItemRange, "past", "range")}
  %item.at = {_at(RangeWorker, "item", "w")}
  %end.at = {_at(RangeWorker, "end", "w")}
  %entered.at = {_at(RangeWorker, "entered", "w")}
  %most.at = {_at(RangeWorker, "most", "w")}
  %status.at = {_at(RangeWorker, "status", "w")}
  %refused.at = {_at(RangeWorker, "refused", "w")}
  %pc.now.at = {_at(ControlBlock, "pc", "control")}
  %sp.now.at = {_at(ControlBlock, "sp", "control")}
  %fp.now.at = {_at(ControlBlock, "fp", "control")}
  %interrupt.at = {_at(ControlBlock, "interrupt", "control")}
  %is.left.at = {_at(ItemRange, "is_left", "range")}
  {_get("operands", ItemRange, "range")}
  %bottom = add i64 %stack, %operands
  %limit.operand = inttoptr i64 %bottom to ptr
  %next.operand = getelementptr i64, ptr %limit.operand, i64 1
  %record.operand = getelementptr i64, ptr %limit.operand, i64 2
  %has.lanes = icmp ne ptr %lanes, null
  %began = call i64 @now(ptr %range)
  br label %more
more:
  %item.old = load i64, ptr %item.at
  %end.old = load i64, ptr %end.at
  %is.within = icmp slt i64 %item.old, %end.old
  br i1 %is.within, label %chunk, label %look
look:
  %interrupt = load atomic i32, ptr %interrupt.at monotonic, align 4
  %is.interrupted = icmp ne i32 %interrupt, 0
  br i1 %is.interrupted, label %over, label %pause
pause:
  %most = load i64, ptr %most.at
  %is.paused = icmp sle i64 %most, 0
  br i1 %is.paused, label %leave, label %take
take:
  %rest = sub i64 %most, 1
  store i64 %rest, ptr %most.at
  %start = atomicrmw add ptr %next.at, i64 %size seq_cst, align 8
  %past = load atomic i64, ptr %past.at seq_cst, align 8
  %is.late = icmp sge i64 %start, %past
  br i1 %is.late, label %late, label %taken
late:
  store i64 %start, ptr %refused.at
  br label %over
taken:
  %whole = add i64 %start, %size
  %end.new = call i64 @llvm.smin.i64(i64 %whole, i64 %limit)
  store i64 %start, ptr %item.at
  store i64 %end.new, ptr %end.at
  br label %chunk
chunk:
  %item = phi i64 [ %item.old, %more ], [ %start, %taken ]
  %end = phi i64 [ %end.old, %more ], [ %end.new, %taken ]
  store i64 %pc, ptr %pc.now.at
  store i64 %sp, ptr %sp.now.at
  store i64 %fp, ptr %fp.now.at
  br i1 %has.lanes, label %vectors, label %one
vectors:
  %reached = call i64 %lanes(ptr %control, i64 %item, i64 %end, ptr %buffer)
  store i64 %reached, ptr %item.at
  %mask = load i64, ptr %buffer
  %is.any = icmp ne i64 %mask, 0
  br i1 %is.any, label %suspend, label %remainder
suspend:
  %is.put = call i1 @suspend_lanes(ptr %w, ptr %range)
  br i1 %is.put, label %was.left, label %leave
was.left:
  store atomic i64 1, ptr %is.left.at seq_cst, align 8
  br label %more
remainder:
  %has.more = icmp slt i64 %reached, %end
  br i1 %has.more, label %one, label %more
one:
  %first = phi i64 [ %item, %chunk ], [ %reached, %remainder ]
  store i64 %first, ptr %entered.at
  store i64 %end, ptr %limit.operand
  store i64 %first, ptr %next.operand
  store i64 0, ptr %record.operand
  %status = call i32 %entry(ptr %control)
  %status.word = zext i32 %status to i64
  store i64 %status.word, ptr %status.at
  %come.to = load i64, ptr %next.operand
  store i64 %come.to, ptr %item.at
  %pc.now = load i64, ptr %pc.now.at
  %sp.now = load i64, ptr %sp.now.at
  %fp.now = load i64, ptr %fp.now.at
  %is.fp = icmp eq i64 %fp.now, %fp
  %is.sp = icmp eq i64 %sp.now, %sp
  %is.below = icmp ult i64 %pc.now, %pc
  %is.above = icmp ugt i64 %pc.now, %last_pc
  %is.out = or i1 %is.below, %is.above
  %is.frame = and i1 %is.fp, %is.sp
  %is.done = and i1 %is.frame, %is.out
  br i1 %is.done, label %done, label %stopped
stopped:
  br i1 %is.fp, label %leave, label %within
within:
  %is.interrupted.now = icmp eq i64 %status.word, {Status.INTERRUPTED:d}
  %is.trap = icmp eq i64 %status.word, {Status.TRAP:d}
  %is.throw = icmp eq i64 %status.word, {Status.THROW:d}
  %is.end = or i1 %is.interrupted.now, %is.trap
  %stops.all = or i1 %is.end, %is.throw
  br i1 %stops.all, label %leave, label %keep
keep:
  %number = sub i64 %come.to, 1
  %frame = sub i64 %fp.now, %sp
  %words = sub i64 %sp.now, %sp
  %to = call ptr @new_slot(ptr %w, i64 %number, i64 %pc.now, i64 %frame, i64 %words)
  %is.full = icmp eq ptr %to, null
  br i1 %is.full, label %leave, label %copy
copy:
  %bottom.words = inttoptr i64 %stack to ptr
  %from = getelementptr i64, ptr %bottom.words, i64 %sp
  %word.bytes = shl i64 %words, 3
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %word.bytes, i1 false)
  store atomic i64 1, ptr %is.left.at seq_cst, align 8
  br label %more
done:
  store i64 %end, ptr %item.at
  br label %more
leave:
  %outcome = phi i64 [ {Outcome.PAUSED}, %pause ], [ {Outcome.LANES}, %suspend ], [ {Outcome.EXIT}, %stopped ], [ {Outcome.EXIT}, %within ], [ {Outcome.EXIT}, %keep ]
  br label %out
over:
  br label %out
out:
  %result = phi i64 [ %outcome, %leave ], [ {Outcome.ENDED}, %over ]
  %now = call i64 @now(ptr %range)
  %spent = sub i64 %now, %began
  {_get("nanoseconds", RangeWorker, "w")}
  %total = add i64 %nanoseconds, %spent
  store i64 %total, ptr %nanoseconds.at
  %is.over = icmp eq i64 %result, {Outcome.ENDED}
  br i1 %is.over, label %ending, label %return
return:
  ret i64 %result
ending:
  %ended = call i64 @ferry_end(ptr %w)
  ret i64 %ended
}}

define i64 @ferry_serve(ptr %p) nounwind {{
  %state.at = {_at(ParkedThread, "state", "p")}
  {_get("lock", ParkedThread, "p", "ptr")}
  {_get("acquire", ParkedThread, "p", "ptr")}
  {_get("floor", ParkedThread, "p")}
  %worker.at = {_at(ParkedThread, "worker", "p")}
  %taken.at = {_at(ParkedThread, "taken", "p")}
  br label %wait
wait:
  store atomic i64 0, ptr %state.at seq_cst, align 8
  call i32 %acquire(ptr %lock, i64 -1, i32 0)
  %given = atomicrmw xchg ptr %worker.at, i64 0 seq_cst, align 8
  %is.given = icmp ne i64 %given, 0
  br i1 %is.given, label %work, label %wait
work:
  %w = inttoptr i64 %given to ptr
  store i64 %given, ptr %taken.at
  {_get("range", RangeWorker, "w", "ptr")}
  {_get("number", RangeWorker, "w")}
  call void @wake(ptr %range, i64 %number)
  call void @begin(ptr %w, ptr %range, i64 %floor)
  %outcome = call i64 @ferry_resume(ptr %w)
  %is.ended = icmp eq i64 %outcome, {Outcome.ENDED}
  br i1 %is.ended, label %wait, label %return
return:
  ret i64 %outcome
}}

define i64 @ferry_launch(ptr %r, ptr %table, i64 %count, i64 %most) nounwind {{
  {_get("helpers", ItemRange, "r", "ptr")}
  {_get("workers", ItemRange, "r", "ptr")}
  br label %look
look:
  %number = phi i64 [ 0, %0 ], [ %following, %next ]
  %found = phi i64 [ 0, %0 ], [ %found.now, %next ]
  %is.there = icmp slt i64 %number, %count
  %is.wanted = icmp slt i64 %found, %most
  %goes.on = and i1 %is.there, %is.wanted
  br i1 %goes.on, label %try, label %begin
try:
  %where = getelementptr ptr, ptr %table, i64 %number
  %p = load ptr, ptr %where
  %state.at = {_at(ParkedThread, "state", "p")}
  %pair = cmpxchg ptr %state.at, i64 0, i64 1 seq_cst seq_cst, align 8
  %is.free = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %is.free, label %claim, label %next
claim:
  %helper = getelementptr ptr, ptr %helpers, i64 %found
  store ptr %p, ptr %helper
  %found.more = add i64 %found, 1
  %distance = mul i64 %found.more, {ctypes.sizeof(RangeWorker)}
  %w = getelementptr i8, ptr %workers, i64 %distance
  %worker.at = {_at(ParkedThread, "worker", "p")}
  store ptr %w, ptr %worker.at
  br label %next
next:
  %found.now = phi i64 [ %found, %try ], [ %found.more, %claim ]
  %following = add i64 %number, 1
  br label %look
begin:
  %threads = add i64 %found, 1
  {_set("helper_count", "%found", ItemRange, "r")}
  {_set("running", "%threads", ItemRange, "r")}
  call void @wake(ptr %r, i64 0)
  call void @begin(ptr %workers, ptr %r, i64 -1)
  %outcome = call i64 @ferry_resume(ptr %workers)
  ret i64 %outcome
}}
"""


@functools.cache
def _loaded() -> ObjectCode:
    return ObjectCode(emitted(improve(parsed_text(_TEXT), Pipeline(2))))


def chunk_loop() -> ChunkLoop:
    """The functions, compiled at the first call."""
    code = _loaded()
    return ChunkLoop(
        *(code.address(f"ferry_{name}") for name in ("launch", "serve", "resume", "end"))
    )
