# SPDX-License-Identifier: Apache-2.0
"""Compilers of plugins that do what they should not: a line that names them, and the program
runs."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import ferryvm
from ferryvm.backend import CompilationError
from ferryvm.engine import Engine
from ferryvm.engine.observer import Observer
from ferryvm.policy import Choice, Options, Policy, Profile, Rule
from ferryvm.registry import Registry

from ..double.distribution import compiler, plant

LOOP = "(define i 0) (while (< i 40) (set! i (+ i 1))) (print! i)"
COMPILE = "def compile(self, region, options):\n    "
WHOLE = """
class Empty(Code):
    address, is_from_cache, notes = 4096, False, {{}}
    {change}
    def activity(self):
        return Activity()
def compile(self, region, options):
    return self.Empty()
"""

FAULTS = {
    "raises": (
        f"{COMPILE}return 1 / 0",
        "it raised ZeroDivisionError: division by zero (bad_plugin.py:6 in compile)",
    ),
    "leaves": (f"{COMPILE}raise BackendError('no assembler')", "no assembler"),
    "returns nothing": (f"{COMPILE}pass", "its compile returned None, not a Code"),
    "returns an address": (f"{COMPILE}return 4096", "its compile returned an int, not a Code"),
    "code without an address": (
        WHOLE.format(change="address = None"),
        "the code that its compile returned has None as its address, where int is expected",
    ),
    "code at address 0": (
        WHOLE.format(change="address = 0"),
        "the code that its compile returned has the address 0",
    ),
    "code without notes": (
        WHOLE.format(change="notes = ()"),
        "the code that its compile returned has a tuple as its notes, where Mapping is expected",
    ),
    "accepts says yes": (
        f"def accepts(self, region):\n    return True\n{COMPILE}pass",
        "its accepts returned True; None or a text is expected",
    ),
    "accepts raises": (
        f"def accepts(self, region):\n    raise KeyError('loop')\n{COMPILE}pass",
        "it raised KeyError: 'loop' (bad_plugin.py:6 in accepts)",
    ),
    "probe ends the process": (
        f"def probe(self):\n    raise SystemExit(4)\n{COMPILE}pass",
        "backend 'odd': its probe failed: SystemExit: 4 (bad_plugin.py:6 in probe)",
    ),
    "probe raises": (
        f"def probe(self):\n    raise OSError('no driver')\n{COMPILE}pass",
        "backend 'odd': its probe failed: OSError: no driver (bad_plugin.py:6 in probe)",
    ),
    "not usable": (
        f"def probe(self):\n    return 'no C compiler; install one'\n{COMPILE}pass",
        "backend 'odd' is not usable here: no C compiler; install one",
    ),
    "protocol": (
        f"protocol = 0\n{COMPILE}pass",
        (
            "backend 'odd' of bad:bad was made for protocol 0 of backends, this ferryvm has protocol "
            "1: update bad, or leave bad out of FERRYVM_PLUGINS"
        ),
    ),
}


def policy(**options: bool) -> Policy:
    """What has been reached ten times goes to `odd`, else to llvm."""
    first = Choice("odd", Options(background=False, **options))
    rule = Rule(backends=(first, Choice("llvm", Options(background=False))))
    return Policy(profile=Profile(True, 10, 10, 10), rules=(rule,))


@pytest.mark.parametrize(("body", "reason"), FAULTS.values(), ids=FAULTS)
def test_a_compiler_that_misbehaves_is_one_line_and_the_next_one_is_asked(
    site: Path, caplog: pytest.LogCaptureFixture, body: str, reason: str
) -> None:
    plant(site, "bad", compiler("odd", body))
    engine = Engine(policy=policy(), registry=Registry())
    observer = Observer()
    observer.watch(engine)
    with caplog.at_level(logging.WARNING, "ferryvm"):
        assert engine.start(ferryvm.compile(LOOP)).run().output == "40\n"
    (placement,) = observer.placements
    odd, llvm = placement.attempts
    assert (odd.backend, odd.outcome.value) == ("odd", "failed")
    assert odd.reason.startswith(reason)
    assert (llvm.backend, placement.state) == ("llvm", "installed")
    (message,) = [record.getMessage() for record in caplog.records]
    assert message == (
        f"backend 'odd' failed on region main/loop.1: {odd.reason}; the program goes on without it"
    )


@pytest.mark.parametrize(
    "body",
    [
        f"def accepts(self, region):\n    return 'loops of this kind'\n{COMPILE}pass",
        f"{COMPILE}raise RefusalError('loops of this kind')",
    ],
)
def test_a_refusal_is_recorded_and_not_told(
    site: Path, caplog: pytest.LogCaptureFixture, body: str
) -> None:
    plant(site, "bad", compiler("odd", body))
    engine = Engine(policy=policy(), registry=Registry())
    observer = Observer()
    observer.watch(engine)
    with caplog.at_level(logging.WARNING, "ferryvm"):
        assert engine.start(ferryvm.compile(LOOP)).run().output == "40\n"
    odd, _ = observer.placements[0].attempts
    assert (odd.outcome.value, odd.reason) == ("refused", "loops of this kind")
    assert caplog.records == []


def test_what_is_required_and_fails_is_an_error(site: Path) -> None:
    plant(site, "bad", compiler("odd", f"{COMPILE}return 1 / 0"))
    engine = Engine(policy=policy(required=True), registry=Registry())
    with pytest.raises(
        CompilationError, match=r"'odd': region main/loop\.1: it raised ZeroDivisionErr"
    ):
        engine.start(ferryvm.compile(LOOP)).run()


def test_a_compiler_asked_for_by_name_that_fails_is_an_error(site: Path) -> None:
    plant(site, "bad", compiler("odd", f"{COMPILE}return 1 / 0"))
    with pytest.raises(CompilationError, match="backend 'odd': region program: it raised ZeroDiv"):
        Engine("odd", registry=Registry()).start(ferryvm.compile(LOOP)).run()
