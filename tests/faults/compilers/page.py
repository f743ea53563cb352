# SPDX-License-Identifier: Apache-2.0
"""The part of docs/planted-faults.md about compilers, made of the table and the campaign's
results."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from .by_hand import BY_HAND
from .planting import CompilerFault
from .programs import Origin
from .search import PATIENCE
from .table import FAULTS, origins

RESULTS = Path(__file__).with_name("results.json")
"""What `campaign --json` wrote last."""

MISSED: dict[str, str] = {
    "kept-over-stores": "no program here has a loop with loads that could be kept and a store that may "
    "change them.",
    "wrap-of-a-word-left-out": "in the programs here that have such code the high half is dropped "
    "by what takes the word.",
}
"""Faults that the campaign does not find, and why."""

_HEAD = """\
## In compilers

Faults in the passes of the region IR and in what compilers make of it are planted by replacing a piece of
a module's source, a few words, while the module is in use:

    python -m tests.faults.compilers.campaign --json tests/faults/compilers/results.json

Each is looked for twice: in {programs} programs at most that generators made, random loops, loops over windows of vectors,
control-flow graphs, bytecode and Skiff in turn, faults of references in random programs with structs and arrays, and in the {by_hand} by hand (`tests/faults/compilers/by_hand.py`), which the
tests run on the compilers without a fault as well. A program is compiled as a whole, counting and not, with
the IR verifier between passes (`FERRYVM_CHECK_IR=1`) and the prover of schedules on (`FERRYVM_CHECK_VLIW=1`), and compared with the
reference. Two faults show only where code is entered at a loop, so they are looked for in code of each loop. Where the fault does not change the code that is made nothing is run: *runs* is how many programs were.

**{share} are found**: {generated} in a generated program, {only} more in one by hand. The first finding is by {tools}.

- *IR verifier*, *prover of schedules*: says what is wrong with the code before it runs.
- *state differs*: the first field in which the two states differ. *Compiler raises*: another exception than the verifier's.
- *does not end*, *process dies*: the code was stopped after {patience:g} s, or took its process with it.
"""


def load() -> dict[str, Any]:
    """The results."""
    results: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return results


def first(entry: dict[str, Any]) -> dict[str, Any] | None:
    """What found a fault: a generated program if one did, else one by hand; None if neither did."""
    found = (entry.get(origin.value, {}) for origin in Origin)
    return next((each for each in found if "tool" in each), None)


def _row(fault: CompilerFault, entry: dict[str, Any]) -> str:
    cells = [f"`{fault.name}`", fault.what, fault.backend, f"`{fault.place}`"]
    for origin in origins(fault):
        look = entry.get(origin.value)
        if look is None:
            cells.append("not looked for")
            continue
        runs = f" ({look['runs']})" if "runs" in look else ""
        cells.append(f"{look.get('program', 'yes')}{runs}" if "tool" in look else f"no{runs}")
    found = first(entry)
    said = found and _shown(found)
    cells.append((found["tool"] + (f": {said}" if said else "")) if found else "not found")
    return f"| {' | '.join(cells)} |"


def _shown(entry: dict[str, Any]) -> str:
    """What a tool said, without what depends on the program."""
    said: str = entry["said"]
    words = said.split()
    if entry["tool"] == "state differs":
        return words[0] if words[0] in ("static", "local", "operand", "heap", "output") else said
    return said.replace("|", "\\|")


def _random(entry: dict[str, Any]) -> dict[str, Any]:
    """What came of looking in random programs."""
    found: dict[str, Any] = entry.get(Origin.GENERATED.value) or entry.get(Origin.OBJECTS.value, {})
    return found


def section() -> list[str]:
    """Its lines."""
    results = load()
    entries = {entry["fault"]: entry for entry in results["results"]}
    found = [each for entry in entries.values() if (each := first(entry)) is not None]
    generated = sum("tool" in _random(entry) for entry in entries.values())
    tools = Counter(each["tool"] for each in found)
    looks = [_random(entry) for entry in entries.values()]
    counts = [look["of"] for look in looks if "of" in look]
    text = _HEAD.format(
        programs=f"{min(counts)} to {max(counts)}",
        by_hand=len(BY_HAND),
        share=f"{len(found)} of {len(entries)} ({len(found) / len(entries):.1%})",
        generated=generated,
        only=len(found) - generated,
        tools=", ".join(f"*{tool}* ({count})" for tool, count in tools.most_common()),
        patience=PATIENCE,
    )
    lines = [*text.splitlines(), ""]
    lines += [
        "| fault | what it does | compiler | where | generated (runs) | by hand (runs) | found by |"
    ]
    lines += ["|---|---|---|---|---|---|---|"]
    lines += [_row(fault, entries[fault.name]) for fault in FAULTS if fault.name in entries]
    lines += ["", "Not found:", ""]
    lines += [f"- `{name}`: {why}" for name, why in MISSED.items()]
    left = [f"`{fault.name}`" for fault in FAULTS if fault.name not in entries]
    if left:
        lines += ["", f"Declared, and not in these results: {', '.join(left)}."]
    return lines
