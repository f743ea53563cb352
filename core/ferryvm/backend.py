# SPDX-License-Identifier: Apache-2.0
"""The contract of a backend: what an engine asks of it and may rely on.

    probe() ── usable? ─┬─> Interpreter: accepts(program) ──> prepare(program) ──> Artifact
                        │       goes on at any pc of a program
                        └─> Compiler: accepts(region) ──> compile(region, options) ──> Code
                                goes on at one pc, and leaves wherever it likes

One rule makes everything else possible: whenever control comes back, control block and memory are
exactly what the reference backend has at that point.
"""

from __future__ import annotations

import abc
import dataclasses
import enum
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ferryvm import record
from ferryvm.cost import Cost
from ferryvm.errors import FerryError
from ferryvm.machine.control import Status
from ferryvm.machine.state import Machine
from ferryvm.verify import Verified

if TYPE_CHECKING:
    from ferryvm.region.region import Region

__all__ = [
    "PROTOCOL_VERSION",
    "Activity",
    "Artifact",
    "Backend",
    "BackendError",
    "Capabilities",
    "Code",
    "CompilationError",
    "Compiler",
    "Finding",
    "Forcing",
    "Interpreter",
    "MalformedError",
    "NestActivity",
    "Options",
    "PreparationError",
    "RefusalError",
    "TooLargeError",
]

PROTOCOL_VERSION = 1
"""Version of this contract and of the control block; a backend states the one it was made for."""


class BackendError(FerryError):
    """A backend cannot be used here, or broke; the message names it and says why."""


class RefusalError(BackendError):
    """A backend does not take a program, or the way in which it is to run; nothing has run."""


class PreparationError(BackendError):
    """A backend raised what is no BackendError before the program began: a fault of its own."""

    def __init__(self, backend: str, what: str) -> None:
        """`what`: it raised, and where."""
        super().__init__(f"backend {backend!r} failed in prepare: {what}")
        self.what = what


class CompilationError(BackendError):
    """A compiler failed at verified code: a fault of its own, where a RefusalError is none."""


class MalformedError(CompilationError):
    """The IR that a compiler was working on breaks a rule of the IR after one of its passes."""


class TooLargeError(RefusalError):
    """A region is beyond what a compiler says that it takes, see `Capabilities.limits`."""


class Forcing(enum.Enum):
    """Rare behaviour of compilers that tests can force everywhere."""

    HOT = "hot"
    """Everything is hot at once: every threshold is 1."""
    DEOPT = "deopt"
    """Every guard fails, at every safepoint."""


@record.dataclass(frozen=True)
class Capabilities:
    """Capabilities of a backend, as data."""

    fuel: bool = True
    """Counts instructions exactly and stops when fuel runs out."""
    forcing: frozenset[Forcing] = frozenset()
    """The behaviour that can be forced; a backend without thresholds or guards has none."""
    cells: bool = False
    """An interpreter: its artifacts count at places and enter compiled code there."""
    devices: bool = False
    """A compiler: it can be told for which device, see `Options.device`."""
    limits: Cost | None = None
    """A compiler: what it takes, so that compiling ends soon. Of a larger region it gets a part, or
    smaller ones; what is too large by itself is interpreted, and the journal says why."""
    heap: int | None = None
    """Bytes of heap that it can address; None: as many as the limits allow. A program that needs
    more traps there with HEAP_EXHAUSTED, and one that already has more is refused."""


class Artifact(abc.ABC):
    """A program as an interpreter prepared it. Several machines may use one, one after another.

    docs/writing-a-backend.md has the whole contract of `enter`. The other methods are there where
    `Capabilities.cells` is set. They put a *cell* in front of one instruction, in the form of the
    code that counts instructions or in the other, and may be called from any thread while the
    program runs: what runs sees the old cell or the new one.
    """

    waited: float = 0.0
    """Seconds that its programs have waited for compilers, in `enter`."""
    compiled: float = 0.0
    """Seconds that compilers have taken for it, waited for or not."""

    @abc.abstractmethod
    def enter(self, machine: Machine, counting: bool) -> Status:
        """Run from `machine.control.pc` until control has to be given back; the status says why.

        The status also stands in `control.status`, with `trap`, `exit_id` or `wanted` where it
        is TRAP, HOST or GROW. `counting`: pay one unit of `control.fuel` an instruction that
        completes, and leave with FUEL before the first one that cannot be paid; what leaves with
        HALT, HOST, TRAP or GROW has not completed.
        """

    def count(self, pc: int, times: int, counting: bool) -> None:
        """Leave with HOT in front of `pc` when control gets there for the `times`-th time from now.

        The cell is gone then.
        """
        raise NotImplementedError(f"{type(self).__name__} has no cells")

    def counted(self, pc: int, counting: bool) -> int:
        """The remaining count of the cell that `count` installed; 0 if there is no such cell."""
        raise NotImplementedError(f"{type(self).__name__} has no cells")

    def install(self, pc: int, address: int, counting: bool) -> None:
        """Call the native function at `address` where control gets to `pc`.

        It is a C function `uint32_t f(ControlBlock *)` that returns a status, as `enter` does. On
        LEAVE the interpreter goes on at `control.pc`, with the instruction there itself, whatever
        its cell; any other status is `enter`'s.
        """
        raise NotImplementedError(f"{type(self).__name__} has no cells")

    def remove(self, pc: int, counting: bool) -> None:
        """Take away the cell in front of `pc`, if there is one."""
        raise NotImplementedError(f"{type(self).__name__} has no cells")

    def metrics(self) -> Mapping[str, Mapping[str, object]]:
        """Metrics of backends about their work for it, by their names: data that JSON can hold.
        Backends without metrics are left out."""
        return {}


@record.dataclass(frozen=True)
class Finding:
    """A finding of a backend about one thing of this machine, for `ferry doctor`. Each text is one
    line."""

    subject: str
    """The thing it is about: a device, a library, a folder."""
    facts: Mapping[str, str | int | float | bool] = dataclasses.field(default_factory=dict)
    """By short names, which are unique; one that ends in ` bytes` has a number of bytes."""
    problem: str = ""
    """The problem; empty if there is none."""
    remedy: str = ""
    """The remedy of the problem, best as commands to copy."""


class Backend(abc.ABC):
    """An execution engine: an `Interpreter` or a `Compiler`."""

    name: str
    """Its name for users; the same as in its `BackendEntry`."""
    version: str
    """Of the backend, for `ferry backends`."""
    protocol: int = 1
    """The version of this contract that it was made for; one that says nothing was made for the
    first. Another than PROTOCOL_VERSION is refused."""
    capabilities: Capabilities = Capabilities()

    def probe(self) -> str | None:
        """None if it is usable on this machine, else the reason why not."""
        return None

    def examine(self) -> Sequence[Finding]:
        """Its findings on this machine, usable or not, with problems and remedies. It may take
        seconds; only `ferry doctor` calls it."""
        return ()


class Interpreter(Backend):
    """A backend that runs whole programs and can go on at any pc."""

    def accepts(self, program: Verified) -> str | None:
        """None if it can run this program, else the reason why not."""
        return None

    @abc.abstractmethod
    def prepare(self, program: Verified) -> Artifact:
        """The program in the backend's own form. Raises BackendError where that fails."""

    def prepare_forced(self, program: Verified, forcing: frozenset[Forcing]) -> Artifact:
        """As `prepare`, for tests; `forcing` is a subset of `capabilities.forcing`. Raises
        BackendError where the backend declares a forcing that it does not implement."""
        raise BackendError(f"backend {self.name!r} declares what it does not implement: forcing")


@record.dataclass(frozen=True)
class Options:
    """Options of a compilation."""

    optimize: int = 2
    """Level, 0 to 3: how much time to spend for how fast code."""
    counting: bool = False
    """Pay fuel, and leave if it does not suffice."""
    cache: bool = True
    """Use the cache on disk."""
    unseen: frozenset[tuple[int, int]] = frozenset()
    """Edges to leave out (speculation): from the branch at the first pc to the second pc. A guard
    replaces each; if the edge is to be taken after all, the code leaves in front of the branch."""
    guard_limit: int = 1000
    """Number of failures of one guard from which it leaves with GUARD; before, with LEAVE."""
    observe: bool = False
    """Keep the metrics of `Activity`."""
    forcing: frozenset[Forcing] = frozenset()
    """For tests."""
    device: str = ""
    """The target device, in the backend's own terms; empty: its default."""
    check: bool = False
    """Verify the IR before and after each pass; an IrError is then a fault of the compiler."""
    quick: bool = False
    """For tests: compile quickly, to code that may be slow. The compiler's own passes run as usual;
    a library such as LLVM runs at its lowest level."""


@record.dataclass(frozen=True)
class NestActivity:
    """Executions of a versioned loop nest: without checks, or with them, and why."""

    pc: int
    """Of the condition of its outermost loop."""
    has_versions: bool
    """True if there is a fast version without checks, which runtime checks select."""
    fast: int
    """Times that the fast version was run."""
    slow: int
    """Times that the other one was."""
    reason: str
    """Why there is no fast version, or why the slow one was run the last time; empty if neither."""
    pcs: tuple[int, ...]
    """The instructions that the reason speaks of."""


@record.dataclass(frozen=True)
class Activity:
    """Metrics of code since it was compiled."""

    entries: int = 0
    """Times that it was entered."""
    seconds: float = 0.0
    """Time spent in it; only where it was compiled to be observed."""
    instructions: int = 0
    """Instructions that it completed; only where observed, and only those that paid fuel."""
    failures: dict[int, int] = dataclasses.field(default_factory=dict)
    """Number of failures of each guard, by pc."""
    to_device: int = 0
    """Bytes copied to the memory of a device."""
    to_host: int = 0
    """Bytes copied back."""
    transfer_seconds: float = 0.0
    """Time spent on copying, and on finding out what to copy; no part of `seconds`."""
    nests: tuple[NestActivity, ...] = ()
    """Executions of loop nests that store; only where observed."""
    crowded: int = 0
    """Entries that it left at once: the host's stack of the thread had no room for its frames."""
    stack: int = 0
    """Bytes that its frames take there; 0: it does not tell."""


class Code(abc.ABC):
    """A compiled region. It is freed when nobody holds it any more."""

    address: int
    """A C function `uint32_t f(ControlBlock *)`: runs from the region's entry and returns a status,
    with control block and memory as `Artifact.enter` leaves them. LEAVE: another backend goes on at
    `control.pc`. Never called with another pc than the region's entry."""
    is_from_cache: bool
    """True if it came from the cache."""
    notes: Mapping[str, float]
    """Seconds that steps of the compilation took, by name."""

    @property
    def lost(self) -> str:
        """Why it cannot be run any more; it has left with LOST, then, and always does."""
        return ""

    @abc.abstractmethod
    def activity(self) -> Activity:
        """Its metrics so far."""

    def metrics(self) -> object:
        """Its metrics so far, in the backend's own form, for `Compiler.report`; None where
        there is nothing to tell besides `activity`. It may be asked of code that is lost."""
        return None


class Compiler(Backend):
    """A backend that runs regions, entered from an interpreter and left to it."""

    def accepts(self, region: Region) -> str | None:
        """None if it can compile the region, else the reason why not."""
        return None

    @abc.abstractmethod
    def compile(self, region: Region, options: Options) -> Code:
        """The region's code. Called in any thread; raises RefusalError for what it does not do
        after all, BackendError where it fails."""

    def warm_up(self) -> None:
        """Import what compiling takes, so that the first code need not wait for it. Not called
        where nothing may be compiled; raises BackendError where it cannot compile at all."""
        return

    def check_device(self, device: str) -> None:
        """Raise FerryError with all that is wrong where `Options.device` cannot be this. Asked only
        of one that has devices, before anything is run."""
        return

    def report(self, all_metrics: Sequence[object]) -> Mapping[str, object]:
        """The backend's own metrics of a program, as data that JSON can hold. `all_metrics`: what
        its codes gave, in the order in which places of the program got hot."""
        return {}

    def show(self, region: Region, options: Options, stage: str) -> str:
        """A stage of the compilation as text. Raises BackendError for one that it has not."""
        known = ", ".join(self.stages) or "nothing"
        raise BackendError(f"backend {self.name!r} shows no {stage!r}; it has: {known}")

    def picture(self, region: Region, options: Options, stage: str) -> str:
        """A stage of the compilation as a page: HTML that needs no other file and no network, see
        `ferryvm.page`. Raises BackendError for one that it has no picture of."""
        known = ", ".join(self.pictures) or "nothing"
        raise BackendError(f"backend {self.name!r} has no picture of {stage!r}; it has: {known}")

    stages: tuple[str, ...] = ()
    """The stages that `show` can show."""
    pictures: tuple[str, ...] = ()
    """Those of them that `picture` can draw."""
