# SPDX-License-Identifier: Apache-2.0
"""The native functions by which threads run the chunks of a launch, in C.

`ferryvm.machine.chunk` says what they do. They are the same for all regions, which they call by
address.
"""

from __future__ import annotations

import ctypes
import functools

from ferryvm.machine import lane
from ferryvm.machine.chunk import (
    CLOCK,
    ChunkLoop,
    ItemRange,
    Outcome,
    ParkedThread,
    RangeWorker,
)
from ferryvm.machine.control import ControlBlock, Status
from ferryvm.machine.item_batch import FRAME, ITEM, PC, SIZE, SLOT_WORDS, STATUS

from ferryvm_cc.compiler import ANOTHER, find
from ferryvm_cc.library import Library, unique_name, workplace


def _struct(structure: type[ctypes.Structure]) -> str:
    """A struct of words as a C type."""
    fields = "".join(f" int64_t {field[0]};" for field in structure._fields_)
    return f"typedef struct {{{fields} }} {structure.__name__};\n"


def _at(field: str) -> int:
    return int(getattr(ControlBlock, field).offset)


_TEXT = f"""\
#include <stdint.h>
#include <string.h>
#include <time.h>
{_struct(ItemRange)}{_struct(RangeWorker)}{_struct(ParkedThread)}
#define SHOWN __attribute__((visibility("default")))
#define FIELD(control, type, at) (*(type *)((char *)(control) + (at)))

static int64_t now(ItemRange *r) {{
    struct timespec t;
    ((int (*)(int, struct timespec *))r->clock)({CLOCK}, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}}

static void wake(ItemRange *r, int64_t number) {{
    for (int64_t child = 2 * number + 1; child <= 2 * number + 2; child++)
        if (child <= r->helper_count)
            ((void (*)(int64_t))r->release)(((ParkedThread **)r->helpers)[child - 1]->lock);
}}

static void begin(RangeWorker *w, ItemRange *r) {{
    memcpy((void *)w->control, (void *)r->template, {ctypes.sizeof(ControlBlock)});
    FIELD(w->control, int64_t, {_at("stack")}) = w->stack;
    FIELD(w->control, int64_t, {_at("stack_end")}) = w->stack_end;
    if (w->object_end) {{
        FIELD(w->control, int64_t, {_at("object_top")}) = w->object_top;
        FIELD(w->control, int64_t, {_at("object_end")}) = w->object_end;
    }}
    memcpy((char *)w->stack + r->frame_offset, (void *)r->frame, r->frame_bytes);
}}

static int64_t revoke(ItemRange *r) {{
    RangeWorker *workers = (RangeWorker *)r->workers;
    ParkedThread **helpers = (ParkedThread **)r->helpers;
    int64_t count = 0;
    for (int64_t i = 0; i < r->helper_count; i++)
        if (__atomic_exchange_n(&helpers[i]->worker, 0, __ATOMIC_SEQ_CST))
            workers[i + 1].status = -1, count++;
    for (int64_t i = 1; i <= r->helper_count; i++)
        if (workers[i].status == -1)
            wake(r, i);
    return count;
}}

SHOWN int64_t ferry_end(RangeWorker *w) {{
    ItemRange *r = (ItemRange *)w->range;
    int64_t release = r->release, bell = r->bell;
    int64_t ending = 1 + (w->number ? 0 : revoke(r));
    if (__atomic_fetch_sub(&r->running, ending, __ATOMIC_SEQ_CST) != ending)
        return {Outcome.ENDED};
    if (__atomic_load_n(&r->is_left, __ATOMIC_SEQ_CST) ||
        __atomic_load_n(&r->next, __ATOMIC_SEQ_CST) < r->limit)
        return {Outcome.LAST};
    *(int64_t *)r->operand = r->limit;
    __atomic_store_n(&r->is_done, 1, __ATOMIC_SEQ_CST);
    ((void (*)(int64_t))release)(bell);
    return {Outcome.ENDED};
}}

static int64_t *new_slot(RangeWorker *w, int64_t item, int64_t pc, int64_t frame, int64_t size) {{
    int64_t *slot = (int64_t *)w->slot;
    if (w->slot + 8 * (size + {SLOT_WORDS}) > w->slot_end || w->entry >= w->entry_end)
        return 0;
    slot[{ITEM}] = item, slot[{PC}] = pc, slot[{FRAME}] = frame, slot[{SIZE}] = size;
    slot[{STATUS}] = 0;
    *(int64_t *)w->entry = w->slot;
    *(int64_t *)(w->entry + w->pc_offset) = pc;
    w->slot += 8 * (size + {SLOT_WORDS});
    w->entry += 8;
    return slot + {SLOT_WORDS};
}}

static int suspend_lanes(RangeWorker *w, ItemRange *r) {{
    int64_t n = r->lane_count, mask = *(int64_t *)w->buffer, *buffer = (int64_t *)w->buffer;
    if (w->slot + 8 * n * (r->lane_rows + {SLOT_WORDS}) > w->slot_end ||
        w->entry + 8 * n > w->entry_end)
        return 0;
    for (int64_t lane = 0; lane < n; lane++)
        if (mask >> lane & 1 && buffer[{lane.STOPS} * n + lane])
            return 0;
    for (int64_t lane = 0; lane < n; lane++) {{
        if (!(mask >> lane & 1))
            continue;
        int64_t length = buffer[{lane.LENGTH} * n + lane];
        int64_t *words = new_slot(w, w->item - n + lane, buffer[{lane.PC} * n + lane],
                                  buffer[{lane.FRAME} * n + lane], length);
        for (int64_t i = 0; i < length; i++)
            words[i] = buffer[({lane.WORDS} + i) * n + lane];
    }}
    return 1;
}}

static int suspend(RangeWorker *w, ItemRange *r, void *control, uint64_t pc) {{
    int64_t fp = FIELD(control, int64_t, {_at("fp")});
    if (fp == r->fp || w->status == {Status.INTERRUPTED:d} || w->status == {Status.TRAP:d} ||
        w->status == {Status.THROW:d})
        return 0;
    int64_t size = FIELD(control, int64_t, {_at("sp")}) - r->sp;
    int64_t *words = new_slot(w, w->item - 1, pc, fp - r->sp, size);
    if (!words)
        return 0;
    memcpy(words, (int64_t *)w->stack + r->sp, 8 * size);
    return 1;
}}

static int64_t run(RangeWorker *w) {{
    ItemRange *r = (ItemRange *)w->range;
    void *control = (void *)w->control;
    int64_t *operands = (int64_t *)(w->stack + r->operands);
    for (;;) {{
        if (w->item >= w->end) {{
            if (__atomic_load_n(&FIELD(control, uint32_t, {_at("interrupt")}), __ATOMIC_RELAXED))
                return {Outcome.ENDED};
            if (w->most <= 0)
                return {Outcome.PAUSED};
            w->most--;
            int64_t start = __atomic_fetch_add(&r->next, r->size, __ATOMIC_SEQ_CST);
            if (start >= __atomic_load_n(&r->past, __ATOMIC_SEQ_CST)) {{
                w->refused = start;
                return {Outcome.ENDED};
            }}
            w->item = start;
            w->end = start + r->size < r->limit ? start + r->size : r->limit;
        }}
        FIELD(control, uint64_t, {_at("pc")}) = r->pc;
        FIELD(control, uint64_t, {_at("sp")}) = r->sp;
        FIELD(control, uint64_t, {_at("fp")}) = r->fp;
        if (r->lanes) {{
            int64_t (*lanes)(void *, int64_t, int64_t, int64_t) = (void *)r->lanes;
            w->item = lanes(control, w->item, w->end, w->buffer);
            if (*(int64_t *)w->buffer) {{
                if (!suspend_lanes(w, r))
                    return {Outcome.LANES};
                __atomic_store_n(&r->is_left, 1, __ATOMIC_SEQ_CST);
                continue;
            }}
            if (w->item >= w->end)
                continue;
        }}
        w->entered = w->item;
        operands[0] = w->end, operands[1] = w->item, operands[2] = 0;
        w->status = ((uint32_t (*)(void *))r->entry)(control);
        w->item = operands[1];
        uint64_t pc = FIELD(control, uint64_t, {_at("pc")});
        if (FIELD(control, uint64_t, {_at("fp")}) != (uint64_t)r->fp ||
            FIELD(control, uint64_t, {_at("sp")}) != (uint64_t)r->sp ||
            (pc >= (uint64_t)r->pc && pc <= (uint64_t)r->last_pc)) {{
            if (!suspend(w, r, control, pc))
                return {Outcome.EXIT};
            __atomic_store_n(&r->is_left, 1, __ATOMIC_SEQ_CST);
            continue;
        }}
        w->item = w->end;
    }}
}}

SHOWN int64_t ferry_resume(RangeWorker *w) {{
    ItemRange *r = (ItemRange *)w->range;
    int64_t began = now(r), outcome = run(w);
    w->nanoseconds += now(r) - began;
    return outcome == {Outcome.ENDED} ? ferry_end(w) : outcome;
}}

SHOWN int64_t ferry_serve(ParkedThread *p) {{
    for (;;) {{
        __atomic_store_n(&p->state, 0, __ATOMIC_SEQ_CST);
        ((int (*)(int64_t, int64_t, int))p->acquire)(p->lock, -1, 0);
        RangeWorker *w = (RangeWorker *)__atomic_exchange_n(&p->worker, 0, __ATOMIC_SEQ_CST);
        if (!w)
            continue;
        p->taken = (int64_t)w;
        wake((ItemRange *)w->range, w->number);
        begin(w, (ItemRange *)w->range);
        FIELD(w->control, int64_t, {_at("host_stack")}) = p->floor;
        int64_t outcome = ferry_resume(w);
        if (outcome != {Outcome.ENDED})
            return outcome;
    }}
}}

SHOWN int64_t ferry_launch(ItemRange *r, ParkedThread **table, int64_t count, int64_t most) {{
    RangeWorker *workers = (RangeWorker *)r->workers;
    int64_t found = 0;
    for (int64_t i = 0; i < count && found < most; i++) {{
        int64_t parked = 0;
        if (__atomic_compare_exchange_n(&table[i]->state, &parked, 1, 0, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST)) {{
            ((ParkedThread **)r->helpers)[found++] = table[i];
            table[i]->worker = (int64_t)&workers[found];
        }}
    }}
    r->helper_count = found;
    r->running = found + 1;
    wake(r, 0);
    begin(workers, r);
    return ferry_resume(workers);
}}
"""


@functools.cache
def _library() -> Library:
    """The functions, compiled once for this process. Raises BackendError."""
    compiler = find()
    with workplace() as folder:
        file = folder / unique_name()
        source = file.with_suffix(".c")
        source.write_text(_TEXT, encoding="utf-8")
        compiler.compile(source, file, 2)
        return Library(file, f"what {compiler.command[0]!r} wrote", ANOTHER)


def chunk_loop() -> ChunkLoop:
    """The functions. Raises BackendError."""
    library = _library()
    names = ("launch", "serve", "resume", "end")
    return ChunkLoop(*(library.address(f"ferry_{name}") for name in names))
