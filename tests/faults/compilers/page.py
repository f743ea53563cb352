# SPDX-License-Identifier: Apache-2.0
"""The part of docs/planted-faults.md about compilers, made of the table and the campaign's results."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from .planting import CompilerFault
from .table import FAULTS

RESULTS = Path(__file__).with_name("results.json")
"""What `campaign --json` wrote last."""

_HEAD = """\
## In compilers

Faults in the passes of the region IR and in what compilers make of it are planted by replacing a piece of
a module's source, a few words, while the module is in use:

    python -m tests.faults.compilers.campaign --json tests/faults/compilers/results.json

Each is looked for in {programs} programs at most: {by_hand} by hand (`tests/faults/compilers/programs.py`), then random
loops, random control-flow graphs and random bytecode in turn. A program is compiled as a whole, counting and not, with
the IR verifier between passes (`FERRYVM_CHECK_IR=1`) and the prover of schedules on (`FERRYVM_CHECK_VLIW=1`), and compared with the
reference. Where the fault does not change the code that is made nothing is run: *runs* is how many programs were.

**{share} are found**: {tools}.

- *IR verifier*, *prover of schedules*: says what is wrong with the code before it runs.
- *state differs*: the first field in which the two states differ. *Compiler raises*: another exception than the verifier's.
- *does not end*, *process dies*: the code was stopped after a minute, or took its process with it.
"""


def load() -> dict[str, Any]:
    """The results."""
    results: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return results


def _row(fault: CompilerFault, entry: dict[str, Any]) -> str:
    cells = [f"`{fault.name}`", fault.what, fault.backend, f"`{fault.place}`"]
    if "tool" in entry:
        said = _shown(entry)
        number = str(entry["number"] + 1) if "number" in entry else ""
        cells += [number, str(entry.get("runs", "")), entry["tool"] + (f": {said}" if said else "")]
    else:
        cells += ["", "", "not found"]
    return f"| {' | '.join(cells)} |"


def _shown(entry: dict[str, Any]) -> str:
    """What a tool said, without what depends on the program."""
    said: str = entry["said"]
    words = said.split()
    if entry["tool"] == "state differs":
        return words[0] if words[0] in ("static", "local", "operand", "heap", "output") else said
    return said.replace("|", "\\|")


def section() -> list[str]:
    """Its lines."""
    from .programs import BY_HAND

    results = load()
    entries = {entry["fault"]: entry for entry in results["results"]}
    found = [entry for entry in entries.values() if "tool" in entry]
    tools = Counter(entry["tool"] for entry in found)
    share = f"{len(found)} of {len(entries)} ({len(found) / len(entries):.1%})"
    told = ", ".join(f"{count} by *{tool}*" for tool, count in tools.most_common())
    text = _HEAD.format(programs=results["programs"], by_hand=len(BY_HAND), share=share, tools=told)
    lines = [*text.splitlines(), ""]
    lines += ["| fault | what it does | compiler | where | program | runs | found by |"]
    lines += ["|---|---|---|---|---|---|---|"]
    lines += [_row(fault, entries[fault.name]) for fault in FAULTS if fault.name in entries]
    left = [f"`{fault.name}`" for fault in FAULTS if fault.name not in entries]
    if left:
        lines += ["", f"Declared, and not in these results: {', '.join(left)}."]
    return lines
