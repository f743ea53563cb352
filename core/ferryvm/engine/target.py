# SPDX-License-Identifier: Apache-2.0
"""Functions of a program that can be called from outside, by their entry stubs."""

from __future__ import annotations

from ferryvm import record
from ferryvm.machine.state import Machine
from ferryvm.program import Signature


@record.dataclass(frozen=True)
class Target:
    """A function that can be called."""

    name: str
    """Its name in messages: that of an exported function."""
    function: int
    """Its number."""
    parameters: tuple[str, ...]
    """The names of the parameters, as far as they are known."""
    signature: Signature
    entry: int
    """pc of its entry stub."""
    halt: int
    """pc of the stub's `halt`."""
    frame_words: int
    """Words of the stub's frame from its header on."""


def target_of(machine: Machine, name: str, function: int, stub: int) -> Target:
    """The target of a function and of its entry stub, by their numbers."""
    program = machine.program
    signature = program.signature(function)
    entry = program.functions[stub].entry
    return Target(
        name,
        function,
        program.functions[function].parameters,
        signature,
        entry,
        entry + len(signature.parameters) + 1,
        machine.verified.frame_words[stub],
    )
