# SPDX-License-Identifier: Apache-2.0
"""Facts and a machine for the tests of rules, and how a `when` is written in them."""

from __future__ import annotations

import dataclasses
from typing import Any

import tomli

from ferryvm.policy.check import KnownBackends, Reading, read_text
from ferryvm.policy.fact import Values
from ferryvm.policy.machine import MachineFacts
from ferryvm.policy.predicate import When, read
from ferryvm.region.fact import Facts
from ferryvm.toml.fault import TomlFault

BACKENDS = ("llvm", "opencl", "reference", "threaded")

MACHINE = MachineFacts(4, "x86_64", "Linux", 8 << 30, "Example 3000")

LOOP = Facts(
    name="work/loop.1",
    kind="loop",
    function="work",
    marked=False,
    instructions=30,
    total_instructions=50,
    loops=1,
    depth=1,
    calls=1,
    recursive=False,
    indirect_calls=False,
    host_calls=0,
    launches=0,
    allocates=False,
    reads_heap=True,
    writes_heap=True,
    statics_read=2,
    statics_written=1,
    floats=0.25,
    integers=0.5,
    memory=0.125,
    control=0.25,
    work=300,
    hotness=20_000,
    mix={"numeric": 20, "heap": 4},
)


def loop(**changes: Any) -> Facts:
    """The facts of the loop, but for what is named."""
    return dataclasses.replace(LOOP, **changes)


def values(facts: Facts = LOOP, **extra: Any) -> Values:
    """What a rule sees of the region; `extra` are facts of the plugin `p`."""
    return Values(facts, MACHINE, {f"plugin.p.{name}": value for name, value in extra.items()})


def when(text: str) -> When:
    """The condition of `when = { TEXT }`, which has no faults."""
    faults: list[TomlFault] = []
    found = read(tomli.loads(f"when = {{ {text} }}")["when"], ("when",), faults.append)
    assert not faults
    return found


def check(text: str) -> Reading:
    """What comes of reading a file with that text."""
    return read_text(text, "p.toml", KnownBackends(BACKENDS))


def faults(text: str) -> list[str]:
    """Its faults, one line each."""
    return [str(fault) for fault in check(text).faults]
