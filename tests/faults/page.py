# SPDX-License-Identifier: Apache-2.0
"""docs/planted-faults.md, made of the table of faults and the results of the slow job.

python -m tests.faults.page              writes the page
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

from ..backends.opencl.item_fault import FAULTS as ITEM_FAULTS
from .barrier import FAULTS as BARRIER_FAULTS
from .collector import FAULTS as COLLECTOR_FAULTS
from .compilers.page import section
from .fault import TRANSFER, Fault
from .guess import FAULTS as GUESS_FAULTS
from .host_loop import FAULTS as LOOP_FAULTS
from .item_batch import FAULTS as BATCH_FAULTS
from .item_range import FAULTS as RANGE_FAULTS
from .kernel import OWN as KERNEL_FAULTS
from .lane import FAULTS as LANE_FAULTS
from .launch import FAULTS as LAUNCH_FAULTS
from .launch import MOST
from .native_call import FAULTS as CALL_FAULTS
from .skeleton import FAULTS as SKELETON_FAULTS
from .slot import FAULTS as SLOT_FAULTS
from .table import FAULTS

RESULTS = Path(__file__).with_name("results.json")
"""What `campaign --json` wrote last."""

NATIVE_RESULTS = Path(__file__).with_name("native.json")
COLLECTOR_RESULTS = Path(__file__).with_name("collector.json")
"""What `campaign --native --json` wrote last."""

PAGE = Path(__file__).resolve().parents[2] / "docs" / "planted-faults.md"

MISSED: dict[str, str] = {}
"""Faults that the slow job does not find, and why."""

_HEAD = """\
# Planted faults

A differential runner that finds nothing may be blind. So faults are planted (mutation testing): a backend
with one mistake, made by wrapping the meaning of an instruction, an operation of the emitter, or the
entry of an artifact. Then random programs look for it, as `ferry fuzz` does, under the limits and schedules
that it uses. This page is generated from the table in `tests/faults` and from the last results:

    python -m tests.faults.campaign --json tests/faults/results.json
    python -m tests.faults.campaign --native --json tests/faults/native.json
    python -m tests.faults.page

Faults in compilers are planted differently: [in compilers](#in-compilers).

"""

_KINDS = """\
Each fault is also shown to be one: a program of a few lines, its witness, ends in another state with the
fault and in the same state without it.

How it was found:

- *program* is the number of the first program that shows the fault, counted from 1; all programs come from
  seed {seed}, bytecode and Skiff in turn, without structs and arrays. Faults are looked for only in programs that have the instruction.
- *schedule* is the one under which it showed. All are looked for without moving the program, and faults of
  moving also under `random`, then `every-boundary` where the program is no longer than 1,500 instructions.
- *first difference* is the field in which the two states differ first. *Uncounted*: only where instructions
  are not counted. *Failure*: the backend raised, where native code would have crashed.
"""

_COLLECTOR = """\
Faults in collections: the collector's definition in Python with one mistake, the native collector with a call of
its builder left out (`native-`), the policy of the object space, and the maps of frames at handlers of exceptions. Random programs look for them, as `ferry fuzz` does: each
program runs once from start to end, under the limits of objects that campaigns have in turn, and the first 300 also under
`--schedule collect`, with a collection at each boundary and each allocation. That schedule also holds an object as Python does,
of the program or a read-only array of the host, and compares its content before and after.

    python -m tests.faults.collector_search --json tests/faults/collector.json

**{share} are found**, half of these within {half} programs. A *crash* ended the process, which `ferry fuzz` reports.
Random object graphs, compared with a model that knows nothing of Cheney's algorithm, find 95 percent of the {count} in
Python in the default tier.
"""


def load(path: Path) -> dict[str, Any]:
    """The results in a file."""
    results: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return results


def _where(fault: Fault) -> str:
    if fault.where == (TRANSFER,):
        return "entering and leaving"
    shown = ", ".join(f"`{mnemonic}`" for mnemonic in fault.where[:3])
    return shown + (", ..." if len(fault.where) > 3 else "")


def _row(fault: Fault, entry: dict[str, Any]) -> str:
    cells = [f"`{fault.name}`", fault.what, _where(fault)]
    if "number" in entry:
        place = _field(entry["field"]) + ("" if entry["is_counted"] else ", uncounted")
        cells += [str(entry["number"] + 1), entry["schedule"], place]
    else:
        cells += ["not found", "", ""]
    return f"| {' | '.join(cells)} |"


def _field(field: str) -> str:
    """The kind of a field, without what depends on the program."""
    words = field.split()
    return words[0] if words[0] in ("static", "local", "operand", "heap", "output") else field


def _part(field: str) -> str:
    """As `_field`, for a part of a state that may be an object."""
    words = field.split()
    return words[0] if words[0] in ("static", "local", "operand", "element", "field") else field


def _table(faults: list[Fault], results: dict[str, Any]) -> list[str]:
    entries = {entry["fault"]: entry for entry in results["results"]}
    lines = [
        "| fault | what it does | where | program | schedule | first difference |",
        "|---|---|---|---|---|---|",
    ]
    return lines + [_row(fault, entries[fault.name]) for fault in faults]


def _summary(results: dict[str, Any]) -> str:
    entries = results["results"]
    numbers = sorted(entry["number"] + 1 for entry in entries if "number" in entry)
    share = f"{len(numbers)} of {len(entries)} ({len(numbers) / len(entries):.1%})"
    middle = statistics.median(numbers)
    return (
        f"**{share} are found within {results['programs']:,} programs each**; half of these within "
        f"{middle:.0f}, nine in ten within {numbers[len(numbers) * 9 // 10]:,}.\n"
    )


def _collector_section() -> list[str]:
    """The faults of the collector."""
    entries: dict[str, Any] = load(COLLECTOR_RESULTS)
    found = [entry["find"] for entry in entries.values() if entry["find"] is not None]
    share = f"{len(found)} of {len(entries)} ({len(found) / len(entries):.1%})"
    programs = sorted(program + 1 for program, _, _ in found)
    text = _COLLECTOR.format(
        count=len(COLLECTOR_FAULTS), share=share, half=programs[len(programs) // 2]
    )
    lines = ["## In the collector", "", text, *_COLLECTOR_HEAD]
    for name, entry in entries.items():
        find = entry["find"]
        how = f"{find[0] + 1} | {find[1]} | {_part(find[2])}" if find else "not found | |"
        lines.append(f"| `{name}` | {' '.join(entry['about'].split())} | {how} |")
    return [*lines, "", *(f"- `{name}`: {why}" for name, why in COLLECTOR_MISSED.items())]


_COLLECTOR_HEAD = (
    "| fault | what it does | program | schedule | first difference |",
    "|---|---|---|---|---|",
)

COLLECTOR_MISSED = {
    "dead-elements-count": "it takes a block that was prepared and that no array took, several times in one program.",
}
"""Faults of collections that random programs do not find."""


def _launch_section() -> list[str]:
    """The faults of launches."""
    lines = ["## In launches", "", _LAUNCHES.format(count=sum(map(len, _OF_LAUNCHES.values())))]
    lines += ["| where | faults |", "|---|---|"]
    for title, faults in _OF_LAUNCHES.items():
        anchor = title.lower().replace(",", "").replace(" ", "-")
        lines.append(f"| [{title.lower()}](#{anchor}) | {len(faults)} |")
    for title, faults in _OF_LAUNCHES.items():
        lines += ["", f"## {title}", "", _ABOUT[title].format(count=len(faults), most=MOST)]
        lines += _abouts(faults)
    return lines


class _Described(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def about(self) -> str: ...


_OF_LAUNCHES: dict[str, Sequence[_Described]] = {
    "In suspended items": LAUNCH_FAULTS,
    "In batches of items": BATCH_FAULTS,
    "At barriers": BARRIER_FAULTS,
    "In kernels": KERNEL_FAULTS,
    "In items on threads": RANGE_FAULTS,
    "In items finished on threads": SLOT_FAULTS,
    "In items in lanes": LANE_FAULTS,
    "In guesses": GUESS_FAULTS,
    "In reductions, scans and updates": SKELETON_FAULTS,
    "In work-items": ITEM_FAULTS,
}


def _abouts(faults: Iterable[_Described]) -> list[str]:
    rows = (f"| `{fault.name}` | {fault.about} |" for fault in faults)
    return ["| fault | what it does |", "|---|---|", *rows]


_LAUNCHES = """{count} faults are planted where launches run: items lost or done twice, frames of other items, host calls
in another order, stale arrays, masks, wrong guesses, shapes of reductions, lost updates. Tests find all of them:

    python -m pytest -m "" tests/faults/test_launch.py tests/faults/test_item.py \\
        tests/faults/test_kernel.py tests/backends/opencl/test_item_fault.py
"""

_ABOUT = {
    "In suspended items": """\
Faults in the record of a launch: `ferryvm.machine.launch` with one mistake. Random programs with launches
(`tests/fuzz/launches.toml`) run under the schedule `suspend`. `tests/faults/test_launch.py` finds all {count} within {most}
programs each, and nothing without a fault.
""",
    "In batches of items": """\
Faults in the native code that makes and takes the pieces of many suspended items: one store of it is left out. A launch whose
items are all suspended shows all {count}, against what Python makes of it and against the reference
(`tests/faults/item_batch.py`).
""",
    "At barriers": """\
Faults in the native code by which items wait for each other: one store of it is left out. A program whose groups wait shows
all {count}, by its states after every 997 instructions against those of the reference (`tests/faults/barrier.py`).
""",
    "In kernels": """\
Faults in the definition of barriers (`ferryvm.machine.barrier`), and in parallel regions (`ferryvm.ir.group`). Random
kernels (`ferry fuzz --kind kernel`) find all {count}, and those [at barriers](#at-barriers), without moving the program,
those in parallel regions in code of `llvm` and of `vliw`: `python -m tests.faults.kernel` prints after how many programs, most
of them in the first, three of them on `vliw` in the 34th and 45th.
""",
    "In items on threads": """\
Faults in `ferryvm.engine.chunked_run`, which runs items of native code on threads and suspends them. Launches whose items
store, print, trap or make arrays, in lanes and one by one, find all {count} (`tests/faults/item_range.py`).
""",
    "In items finished on threads": """\
Faults in `ferryvm.engine.slot_run`, whose threads run suspended items to their ends. Items that recur and store, in a static,
too, find all {count}: what the threads and then the reference have done is held against the reference alone
(`tests/faults/slot.py`).
""",
    "In items in lanes": """\
Faults in the vectorisation of items (`ferryvm.ir.lane`), and in the evaluator of its result. The cases of
`tests/ir/lane/case.py` find all {count} (`tests/faults/lane.py`). Four of them are planted for random kernels, too, where items
of parallel regions run in four lanes on `llvm`, and are found in the 7th or the 11th program (`tests/faults/kernel.py`).
""",
    "In guesses": """\
Faults in what code of launches leaves out and takes for constant ([guesses](mixed-execution.md#guesses-in-launches)), in
the items that fail, and in what is counted and told of them. A program whose items take a branch rarely, and whose words
change now and then, finds all {count}, on threads, in lanes and on `vliw` in order (`tests/faults/guess.py`).
""",
    "In reductions, scans and updates": """\
Faults in the generated functions of reductions and scans, held against the order that is
[stated](parallel.md#the-order); and in atomic updates by items on threads, held against the loop. All {count} are found
(`tests/faults/skeleton.py`).
""",
    "In work-items": """\
Faults in launches whose items are work-items of `opencl`: its host part or its kernels with one mistake. The cases of
`tests/backends/opencl/test_items.py` find all {count} (`test_item_fault.py`, on PoCL).
""",
}


_CALLS = """\
## In calls from Python

Faults in the generated code by which built-in functions [call compiled ones](decisions/2026-11-26-native-calls.md): a test
that hands a call to Python code is left out. A call for which the test is finds each of the {count}
(`tests/faults/native_call.py`, `test_native_call.py`).
"""

_LOOP = """\
## In host calls

Faults in the native loop that [performs host calls](decisions/2026-11-26-item-batches.md#host-calls-of-items): a test or a store
is left out. States for which each of them is find all {count} (`tests/faults/host_loop.py`, `test_host_loop.py`).
"""


def markdown() -> str:
    """The page."""
    results, native = load(RESULTS), load(NATIVE_RESULTS)
    planted = {entry["fault"] for entry in native["results"]}
    lines = [_HEAD + _summary(results), _KINDS.format(seed=results["seed"]), "## The table", ""]
    lines += _table(FAULTS, results)
    lines += ["", "## Not found", ""]
    missed = [entry["fault"] for entry in results["results"] if "number" not in entry]
    lines += [f"- `{name}`: {MISSED[name]}" for name in missed] or ["All are found."]
    lines += ["", "## In native code", ""]
    lines.append(
        "These are planted in the switch interpreter as well, by weaving it from the faulty table, and "
        "held against the right one, both at native speed."
    )
    lines += ["", *_table([fault for fault in FAULTS if fault.name in planted], native)]
    lines += ["", *section(), "", *_collector_section(), "", *_launch_section()]
    lines += ["", _CALLS.format(count=len(CALL_FAULTS)), *_abouts(CALL_FAULTS)]
    lines += ["", _LOOP.format(count=len(LOOP_FAULTS)), *_abouts(LOOP_FAULTS)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(markdown(), encoding="utf-8")
