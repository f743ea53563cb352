# SPDX-License-Identifier: Apache-2.0
"""The process in which `ferry conformance` runs a backend, which may crash or hang.

Its standard input is a line of JSON, [backend, patience in seconds], and then a label for each item
to run. On the original standard output it answers in lines of JSON: `ready` or `error`, then a
verdict for each label. When its input ends it ends at once, too.
"""

from __future__ import annotations

import faulthandler
import json
import os
import queue
import signal
import threading
from typing import Any

from ferryvm.engine import runnable
from ferryvm.errors import FerryError
from ferryvm.registry import Registry
from ferryvm.testing.conformance.exception import describe
from ferryvm.testing.conformance.suite import Item, ItemOutcome, ItemVerdict, checks


def main() -> None:
    """Work until the input ends."""
    faulthandler.enable()  # prints the position of a backend that crashes or is stopped
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to end
    requests, answers = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # output of backends is not an answer
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(requests, lines), daemon=True).start()
    name, patience = json.loads(lines.get())
    try:
        backend = runnable(Registry(), name)
        known = {item.label: item for item in checks()}
    except BaseException as error:  # noqa: BLE001 - a plugin may raise anything
        is_known_error = isinstance(error, FerryError)
        text = (
            str(error)
            if is_known_error
            else f"backend {name!r} does not load: it {describe(error)}"
        )
        _answer(answers, {"error": text})
        return
    _answer(answers, {"ready": True})
    while True:
        # The parent's patience ends first: a hanging backend can be stopped only with its process.
        outcome = _run(known[lines.get()], backend, 2 * patience + 1)
        if isinstance(outcome, str):
            _answer(answers, {"error": outcome})
            continue
        text = outcome.message if outcome.verdict is ItemVerdict.FAILED else outcome.reason
        _answer(answers, {"verdict": outcome.verdict.value, "text": text})


def _run(item: Item, backend: Any, patience: float) -> ItemOutcome | str:
    """The outcome of an item; a text if the suite itself is at fault."""
    try:
        return item.run(backend, patience)
    except FerryError as error:
        return str(error)
    except BaseException as error:  # noqa: BLE001 - memory may be spoilt; no item is lost by it
        return ItemOutcome(ItemVerdict.FAILED, f"{item.label}: the suite {describe(error)}")


def _listen(requests: int, lines: queue.SimpleQueue[str]) -> None:
    with os.fdopen(requests) as stream:
        for line in stream:
            lines.put(line.rstrip("\n"))
    os._exit(0)  # no more is expected; a hanging backend would block


def _answer(answers: int, message: dict[str, Any]) -> None:
    """Write a line at once, whole: the next action may end the process."""
    line = json.dumps(message).encode() + b"\n"
    try:
        while line:
            line = line[os.write(answers, line) :]
    except BrokenPipeError:
        os._exit(0)
