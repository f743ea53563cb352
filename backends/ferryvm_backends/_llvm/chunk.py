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

from ferryvm import cache
from ferryvm.machine.chunk import (
    CLOCK,
    ChunkLoop,
    ItemRange,
    Outcome,
    ParkedThread,
    RangeWorker,
)
from ferryvm.machine.control import ControlBlock, Status
from ferryvm_backends._llvm import native
from ferryvm_backends._llvm.chunk_slot import SLOTS, field_at, get, put
from ferryvm_backends._llvm.loader import NativeCode

_TEXT = f"""
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i64 @llvm.smin.i64(i64, i64)

define internal i64 @now(ptr %r) nounwind {{
  %time = alloca [2 x i64]
  {get("clock", ItemRange, "r", "ptr")}
  call i32 %clock(i32 {CLOCK}, ptr %time)
  %seconds = load i64, ptr %time
  %part = {"getelementptr i8, ptr %time, i64 8"}
  %rest = load i64, ptr %part
  %whole = mul i64 %seconds, 1000000000
  %found = add i64 %whole, %rest
  ret i64 %found
}}

define internal void @wake(ptr %r, i64 %number) nounwind {{
  {get("helper_count", ItemRange, "r")}
  {get("helpers", ItemRange, "r", "ptr")}
  {get("release", ItemRange, "r", "ptr")}
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
  {get("lock", ParkedThread, "p", "ptr")}
  call void %release(ptr %lock)
  br label %next
done:
  ret void
}}

define internal void @begin(ptr %w, ptr %r, i64 %floor) nounwind {{
  {get("control", RangeWorker, "w", "ptr")}
  {get("template", ItemRange, "r", "ptr")}
  call void @llvm.memcpy.p0.p0.i64(ptr %control, ptr %template, i64 {ctypes.sizeof(ControlBlock)}, i1 false)
  {get("stack", RangeWorker, "w")}
  {get("stack_end", RangeWorker, "w")}
  {put("stack.own", "%stack", ControlBlock, "control")}
  {put("stack_end.own", "%stack_end", ControlBlock, "control")}
  {get("frame", ItemRange, "r", "ptr")}
  {get("frame_offset", ItemRange, "r")}
  {get("frame_bytes", ItemRange, "r")}
  %bottom = inttoptr i64 %stack to ptr
  %to = getelementptr i8, ptr %bottom, i64 %frame_offset
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %frame, i64 %frame_bytes, i1 false)
  {get("object_end", RangeWorker, "w")}
  %has.objects = icmp ne i64 %object_end, 0
  br i1 %has.objects, label %objects, label %thread
objects:
  {get("object_top", RangeWorker, "w")}
  {put("object_top.own", "%object_top", ControlBlock, "control")}
  {put("object_end.own", "%object_end", ControlBlock, "control")}
  br label %thread
thread:
  %is.own = icmp eq i64 %floor, -1
  br i1 %is.own, label %done, label %other
other:
  {put("host_stack", "%floor", ControlBlock, "control")}
  br label %done
done:
  ret void
}}

define internal i64 @revoke(ptr %r) nounwind {{
  {get("helper_count", ItemRange, "r")}
  {get("helpers", ItemRange, "r", "ptr")}
  {get("workers", ItemRange, "r", "ptr")}
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
  %worker.at = {field_at(ParkedThread, "worker", "p")}
  %own.distance = mul i64 %following, {ctypes.sizeof(RangeWorker)}
  %own = getelementptr i8, ptr %workers, i64 %own.distance
  ; The thread may have ended, and have been given a worker of another launch.
  %pair = cmpxchg ptr %worker.at, ptr %own, ptr null seq_cst seq_cst, align 8
  %is.revoked.now = extractvalue {{ ptr, i1 }} %pair, 1
  br i1 %is.revoked.now, label %mark, label %looked
mark:
  {put("status", "-1", RangeWorker, "own")}
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
  {get("status.now", RangeWorker, "w")}
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

{SLOTS}
define i64 @ferry_end(ptr %w) nounwind {{
  {get("range", RangeWorker, "w", "ptr")}
  {get("release", ItemRange, "range", "ptr")}
  {get("bell", ItemRange, "range", "ptr")}
  {get("limit", ItemRange, "range")}
  {get("number", RangeWorker, "w")}
  %running = {field_at(ItemRange, "running", "range")}
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
  %is.left.at = {field_at(ItemRange, "is_left", "range")}
  %is.left = load atomic i64, ptr %is.left.at seq_cst, align 8
  %next.at = {field_at(ItemRange, "next", "range")}
  %next = load atomic i64, ptr %next.at seq_cst, align 8
  %nothing = icmp eq i64 %is.left, 0
  %all = icmp sge i64 %next, %limit
  %is.whole = and i1 %nothing, %all
  br i1 %is.whole, label %whole, label %part
whole:
  {get("operand", ItemRange, "range", "ptr")}
  store i64 %limit, ptr %operand
  %done.at = {field_at(ItemRange, "is_done", "range")}
  store atomic i64 1, ptr %done.at seq_cst, align 8
  call void %release(ptr %bell)
  br label %ended
ended:
  ret i64 {Outcome.ENDED}
part:
  ret i64 {Outcome.LAST}
}}

define i64 @ferry_resume(ptr %w) nounwind {{
  {get("range", RangeWorker, "w", "ptr")}
  {get("control", RangeWorker, "w", "ptr")}
  {get("stack", RangeWorker, "w")}
  {get("buffer", RangeWorker, "w", "ptr")}
  {get("size", ItemRange, "range")}
  {get("limit", ItemRange, "range")}
  {get("pc", ItemRange, "range")}
  {get("last_pc", ItemRange, "range")}
  {get("sp", ItemRange, "range")}
  {get("fp", ItemRange, "range")}
  {get("entry", ItemRange, "range", "ptr")}
  {get("lanes", ItemRange, "range", "ptr")}
  %next.at = {field_at(ItemRange, "next", "range")}
  %past.at = {field_at(ItemRange, "past", "range")}
  %item.at = {field_at(RangeWorker, "item", "w")}
  %end.at = {field_at(RangeWorker, "end", "w")}
  %entered.at = {field_at(RangeWorker, "entered", "w")}
  %most.at = {field_at(RangeWorker, "most", "w")}
  %status.at = {field_at(RangeWorker, "status", "w")}
  %refused.at = {field_at(RangeWorker, "refused", "w")}
  %pc.now.at = {field_at(ControlBlock, "pc", "control")}
  %sp.now.at = {field_at(ControlBlock, "sp", "control")}
  %fp.now.at = {field_at(ControlBlock, "fp", "control")}
  %interrupt.at = {field_at(ControlBlock, "interrupt", "control")}
  %is.left.at = {field_at(ItemRange, "is_left", "range")}
  {get("operands", ItemRange, "range")}
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
  {get("nanoseconds", RangeWorker, "w")}
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
  %state.at = {field_at(ParkedThread, "state", "p")}
  {get("lock", ParkedThread, "p", "ptr")}
  {get("acquire", ParkedThread, "p", "ptr")}
  {get("floor", ParkedThread, "p")}
  %worker.at = {field_at(ParkedThread, "worker", "p")}
  %taken.at = {field_at(ParkedThread, "taken", "p")}
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
  {get("range", RangeWorker, "w", "ptr")}
  {get("number", RangeWorker, "w")}
  call void @wake(ptr %range, i64 %number)
  call void @begin(ptr %w, ptr %range, i64 %floor)
  %outcome = call i64 @ferry_resume(ptr %w)
  %is.ended = icmp eq i64 %outcome, {Outcome.ENDED}
  br i1 %is.ended, label %wait, label %return
return:
  ret i64 %outcome
}}

define i64 @ferry_launch(ptr %r, ptr %table, i64 %count, i64 %most) nounwind {{
  {get("helpers", ItemRange, "r", "ptr")}
  {get("workers", ItemRange, "r", "ptr")}
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
  %state.at = {field_at(ParkedThread, "state", "p")}
  %pair = cmpxchg ptr %state.at, i64 0, i64 1 seq_cst seq_cst, align 8
  %is.free = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %is.free, label %claim, label %next
claim:
  %helper = getelementptr ptr, ptr %helpers, i64 %found
  store ptr %p, ptr %helper
  %found.more = add i64 %found, 1
  %distance = mul i64 %found.more, {ctypes.sizeof(RangeWorker)}
  %w = getelementptr i8, ptr %workers, i64 %distance
  %worker.at = {field_at(ParkedThread, "worker", "p")}
  store ptr %w, ptr %worker.at
  br label %next
next:
  %found.now = phi i64 [ %found, %try ], [ %found.more, %claim ]
  %following = add i64 %number, 1
  br label %look
begin:
  %threads = add i64 %found, 1
  {put("helper_count", "%found", ItemRange, "r")}
  {put("running", "%threads", ItemRange, "r")}
  call void @wake(ptr %r, i64 0)
  call void @begin(ptr %workers, ptr %r, i64 -1)
  %outcome = call i64 @ferry_resume(ptr %workers)
  ret i64 %outcome
}}
"""


@functools.cache
def _loaded() -> NativeCode:
    def build() -> bytes:
        from ferryvm_backends._llvm.codegen import object_code, parsed_text  # it takes LLVM
        from ferryvm_backends._llvm.passes import Pipeline, improve

        return object_code(improve(parsed_text(_TEXT), Pipeline.LEVEL_2))

    entry = cache.Entry("chunks", native.key("ferryvm_backends._llvm"), "llvm")
    return native.made(entry, build)[0]


def chunk_loop() -> ChunkLoop:
    """The functions, compiled at the first call."""
    code = _loaded()
    return ChunkLoop(
        *(code.address(f"ferry_{name}") for name in ("launch", "serve", "resume", "end"))
    )
