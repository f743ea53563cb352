# SPDX-License-Identifier: Apache-2.0
"""A small machine without faults, as text, for tests that change it."""

from __future__ import annotations

HEAD = """\
name = "small"
clock = 50
slots = 1
immediates = 1
delay_slots = 0
predication = true
bypass = false
instructions = 100
memory = 1024
transfer = { bytes_per_cycle = 0.5, setup = 10 }
"""
FILES = """\
[[file]]
name = "r"
kind = "integer"
count = 2
registers = 8
read_ports = 2
write_ports = 1
[[file]]
name = "p"
kind = "boolean"
registers = 4
read_ports = 1
write_ports = 1
"""
UNIT = """\
[[unit]]
name = "core"
work = { move = 1, add = 1, load = 3, store = 1, branch = 1 }
"""
SMALL = HEAD + FILES + UNIT
UNIT_LINE = (HEAD + FILES).count("\n") + 1


def changed(old: str, new: str) -> str:
    """The small machine with a part of its text changed."""
    assert SMALL.count(old) >= 1
    return SMALL.replace(old, new, 1)
