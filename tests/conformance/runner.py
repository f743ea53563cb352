# SPDX-License-Identifier: Apache-2.0
"""A runner of exported cases that knows nothing but docs/conformance.md and the contract.

It is what an author would write in another language: it imports nothing of ferryvm.testing.
"""

from __future__ import annotations

import base64
import ctypes
import threading
from typing import Any

from ferryvm.backend import Artifact, Backend
from ferryvm.image import from_bytes
from ferryvm.machine.memory import Limits
from ferryvm.machine.state import Machine
from ferryvm.verify import verify

NUMBERS = (
    *("status", "trap", "exit_id", "wanted", "wanted_type", "fuel"),
    *("pc", "sp", "fp", "hp", "heap_capacity"),
)
MASK = (1 << 64) - 1


def memory(pieces: list[str | int]) -> bytes:
    return b"".join(bytes(p) if isinstance(p, int) else bytes.fromhex(p) for p in pieces)


def segments(machine: Machine) -> dict[str, Any]:
    control, m = machine.control, machine.memory
    views = {"statics": m.statics, "stack": m.stack[: control.sp], "heap": m.heap[: control.hp]}
    return {name: view.cast("B") for name, view in views.items()}


def differs(machine: Machine, state: dict[str, Any]) -> str | None:
    for name in NUMBERS:
        if name in state and getattr(machine.control, name) != state[name]:
            return name
    for name, found in segments(machine).items():
        if found != memory(state[name]):
            return name
    return other_objects(machine, state) if "objects" in state else None


def other_objects(machine: Machine, state: dict[str, Any]) -> str | None:
    """The field that differs: places of elements outside are addresses, and 0 in the state."""
    base, top = machine.control.objects, machine.control.object_top
    found = bytearray(ctypes.string_at(base, top))
    words = memoryview(found).cast("Q")
    for offset, pieces in state["elements"]:
        at = offset // 8 + 2
        if at >= len(words):
            return "elements"
        wanted = memory(pieces)
        if ctypes.string_at((base + words[at]) & MASK, len(wanted)) != wanted:
            return "elements"
        words[at] = 0
    return None if found == memory(state["objects"]) else "objects"


class Runner:
    """One line of a file, on one backend."""

    def __init__(self, case: dict[str, Any], backend: Backend) -> None:
        self.program = verify(from_bytes(base64.b64decode(case["image"]), case["about"]))
        self.limits, self.steps, self.trail = Limits(**case["limits"]), case["steps"], case["trail"]
        self.artifact: Artifact = backend.prepare(self.program)
        self.machines: dict[int, Machine] = {}
        self.blocks: list[object] = []
        self.at = 0

    def run(self) -> str | None:
        """None if all is as expected, else the step and the field that is not."""
        for number, step in enumerate(self.steps):
            fault = getattr(self, f"do_{step['do']}")(step["machine"], step)
            if fault:
                return f"step {number}: {fault}"
        return None

    def do_start(self, n: int, step: dict[str, Any]) -> str | None:
        self.machines[n] = Machine(self.program, self.limits)
        self.machines[n].control.object_end = self.machines[n].control.object_top
        return differs(self.machines[n], step["expected"])

    def do_put(self, n: int, step: dict[str, Any]) -> str | None:
        if step["do"] != "move":
            self.machines[n] = Machine(self.program, self.limits)
        machine, state = self.machines[n], step.get("state") or step["expected"]
        if state["heap_capacity"] != machine.control.heap_capacity:
            machine.control.wanted = state["heap_capacity"]
            machine.grow()
        for name in ("pc", "sp", "fp", "hp"):
            setattr(machine.control, name, state[name])
        for name, view in segments(machine).items():
            view[:] = memory(state[name])
        if "objects" in state:
            self.put_objects(machine, state)
        return None

    def put_objects(self, machine: Machine, state: dict[str, Any]) -> None:
        control, content = machine.control, bytearray(memory(state["objects"]))
        words = memoryview(content).cast("Q")
        for offset, pieces in state["elements"]:
            words[offset // 8 + 2] = self.place(machine, memory(pieces))
        words.release()
        ctypes.memset(control.objects, 0, self.limits.objects)
        ctypes.memmove(control.objects, bytes(content), len(content))
        control.object_top = control.object_end = len(content)

    def place(self, machine: Machine, content: bytes) -> int:
        """The place of new elements outside."""
        block = ctypes.create_string_buffer(content, len(content))
        self.blocks.append(block)
        return (ctypes.addressof(block) - machine.control.objects) & MASK

    def do_allocate(self, n: int, step: dict[str, Any]) -> None:
        machine, control = self.machines[n], self.machines[n].control
        control.object_end = step["object_end"]
        if step["elements"]:
            control.prepared = self.place(machine, bytes(step["elements"]))
            control.prepared_bytes = step["elements"]

    do_load = do_move = do_put

    def do_save(self, n: int, step: dict[str, Any]) -> None:
        """Files are for those who write them; the state in them has been compared."""

    def do_litter(self, n: int, step: dict[str, Any]) -> None:
        machine = self.machines[n]
        above = machine.memory.stack[machine.control.sp :].cast("B")
        above[:] = bytes.fromhex(step["word"]) * (len(above) // 8)

    def do_host(self, n: int, step: dict[str, Any]) -> None:
        control = self.machines[n].control
        control.sp -= step["arguments"]
        if step["result"] is not None:
            word = int.from_bytes(bytes.fromhex(step["result"]), "little")
            self.machines[n].memory.stack[control.sp] = word
            control.sp += 1
        control.pc += 1
        control.fuel -= step["counting"]

    def do_grow(self, n: int, step: dict[str, Any]) -> None:
        self.machines[n].grow()

    def do_enter(self, n: int, step: dict[str, Any]) -> str | None:
        machine, control = self.machines[n], self.machines[n].control
        control.fuel = before = step.get("fuel", control.fuel)
        control.interrupt = step.get("interrupt") == "before"
        timer = threading.Timer(0.01, lambda: setattr(control, "interrupt", 1))
        if step.get("interrupt") == "later":
            timer.start()
        status = self.artifact.enter(machine, step["counting"])
        timer.cancel()
        if status != control.status:
            return "status returned"
        if control.interrupt != ("interrupt" in step):
            return "interrupt"
        if "expected" in step:
            return differs(machine, step["expected"])
        return self.on_trail(machine, step, before - control.fuel)

    def on_trail(self, machine: Machine, step: dict[str, Any], paid: int) -> str | None:
        states, period = self.trail["states"], self.trail["period"]
        if step["trail"] == "last":
            return differs(machine, states[-1])
        if step["trail"] == "somewhere" and not step["counting"]:
            for self.at, state in enumerate(states):
                if not differs(machine, state | {"status": 7}):
                    return None
            return "trail" if period or differs(machine, states[-1]) else None
        ahead = step["trail"] == "ahead"
        self.at += step["ahead"] if ahead else paid
        if self.at >= len(states):
            self.at = len(states) - period + (self.at - len(states)) % period
        return differs(machine, states[self.at] | {"status": 8 if ahead else 7})
