# SPDX-License-Identifier: Apache-2.0
"""A call of an exported function as its caller sees it, and the errors of calls that stop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from ferryvm.engine.marshal import CallError, Value
from ferryvm.engine.result import shown_stack
from ferryvm.engine.target import Target
from ferryvm.errors import FerryError
from ferryvm.machine.state import Machine

_R = TypeVar("_R")


class _Calls(Protocol):
    """The parts of `ferryvm.engine.call.Calls` that this needs, as that module imports this one."""

    machine: Machine

    def resume(self, call: Call, fuel: int | None, backend: str | None) -> Value:
        """Continue a call."""

    def abandon(self, call: Call) -> None:
        """Remove a call from the stack."""

    def stood(self, call: Call, look: Callable[[Machine], _R]) -> _R:
        """Look at the machine as a call left it."""


class Call:
    """An active call of an exported function: running, or stopped."""

    def __init__(self, calls: _Calls, target: Target, before: bytes, at: bytes = b"") -> None:
        """`before`: the registers to restore; `at`: the registers when it stopped."""
        self._calls, self.target, self.before, self.at = calls, target, before, at
        self.machine = calls.machine
        self.name = target.name
        self.is_lost = False
        """True if it stopped inside a host function, where it cannot be resumed."""

    def __repr__(self) -> str:
        return f"<ferryvm call of {self.name}>"

    def resume(self, fuel: int | None = None, backend: str | None = None) -> Value:
        """Continue; as `Instance.call`. Raises CallError if it is not the last call that
        stopped."""
        return self._calls.resume(self, fuel, backend)

    def abandon(self) -> None:
        """Remove the call from the stack; its changes of statics and heap remain. Raises CallError
        as `resume`."""
        self._calls.abandon(self)

    def stood(self, look: Callable[[Machine], _R]) -> _R:
        """The result of a function that looks at the machine as it stood when the call stopped.
        Raises CallError as `resume`."""
        return self._calls.stood(self, look)


class InUseError(CallError):
    """Another call has the instance."""


class OutOfFuelError(FerryError):
    """A call ran out of fuel; `call` can resume it."""

    def __init__(self, call: Call) -> None:
        self.call = call
        super().__init__(shown_stack(call.machine, f"{call.name}: out of fuel"))
