# SPDX-License-Identifier: Apache-2.0
"""The contract of a backend: its interface to the engine, and its guarantees.

    probe() ── usable? ─┬─> Interpreter: accepts(program) ──> prepare(program) ──> Artifact
                        │       can be entered at any pc of a program
                        └─> Compiler: accepts(region) ──> compile(region, options) ──> Code
                                can be entered at one pc, and leaves at any pc

Invariant: when a backend returns control, control block and memory equal the reference backend's
state at that point.
"""

from __future__ import annotations

import abc
import enum
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from ferryvm import record
from ferryvm.activity import Activity, ArrayActivity, NestActivity, Transfers
from ferryvm.cost import Cost
from ferryvm.errors import FerryError
from ferryvm.machine.control import Status
from ferryvm.machine.lane import LaneEntry
from ferryvm.machine.python_call import CallForm
from ferryvm.machine.state import Machine
from ferryvm.named_tuple import NamedTuple
from ferryvm.program import Signature
from ferryvm.verify import Verified

if TYPE_CHECKING:
    from ferryvm.item_range import RangeRunner
    from ferryvm.machine.chunk import ChunkLoop
    from ferryvm.machine.control import ControlBlock
    from ferryvm.machine.slot_code import SlotCode
    from ferryvm.region.region import Region

__all__ = [
    "PROTOCOL_VERSION",
    "Activity",
    "ArrayActivity",
    "Artifact",
    "Backend",
    "BackendError",
    "Capabilities",
    "Code",
    "CompilationError",
    "Compiler",
    "DependenceError",
    "DirectEntry",
    "Finding",
    "Forcing",
    "Interpreter",
    "MalformedError",
    "NestActivity",
    "Options",
    "PreparationError",
    "RefusalError",
    "Tiers",
    "TooLargeError",
    "Transfers",
]

PROTOCOL_VERSION = 1
"""Version of this contract and of the control block; a backend declares the one it implements."""


class BackendError(FerryError):
    """A backend is not usable on this machine, or failed; the message names it and the reason."""


class RefusalError(BackendError):
    """A backend does not accept a program or region, or its options; nothing has run."""


class PreparationError(BackendError):
    """A backend raised an exception other than BackendError before the program began: a fault of
    the backend."""

    def __init__(self, backend: str, what: str) -> None:
        """`what`: the exception and its place."""
        super().__init__(f"backend {backend!r} failed in prepare: {what}")
        self.what = what


class CompilationError(BackendError):
    """A compiler failed on verified code: a fault of the compiler, unlike a RefusalError."""


class MalformedError(CompilationError):
    """A compiler's IR violates a rule of the IR after one of its passes."""


class TooLargeError(RefusalError):
    """A region exceeds the compiler's limits, see `Capabilities.limits`."""


class DependenceError(FerryError):
    """Two items of a launch access the same element, field, static or byte, and one writes it: a
    fault of the program."""


class Forcing(enum.Enum):
    """Rare behaviour of backends that tests can force everywhere."""

    HOT = "hot"
    """Everything is hot at once: every threshold is 1."""
    DEOPT = "deopt"
    """Every guard fails, at each safepoint."""
    PARALLEL = "parallel"
    """Items of launches run out of order wherever they may, however few they are."""
    INDEPENDENCE = "independence"
    """The items of launches are checked to be independent: an interpreter raises DependenceError
    where two of them are not."""


@record.dataclass(frozen=True)
class Tiers:
    """Two levels of optimisation: the first one of code, and the work after which it is
    replaced."""

    quick: int
    """The highest level at which compiling is quick and the code may be slow."""
    recompile_after: int
    """The work after which such code is made again at the level that is wanted, unless a policy
    says otherwise; in a unit of the backend's own, such as cycles of its device."""


@record.dataclass(frozen=True)
class Capabilities:
    """Capabilities of a backend, as data."""

    fuel: bool = True
    """Counts instructions exactly and stops when fuel runs out."""
    forcing: frozenset[Forcing] = frozenset()
    """The behaviour that tests can force; none for a backend without thresholds and guards."""
    cells: bool = False
    """An interpreter: its artifacts support cells, which count executions of a pc or enter compiled
    code there."""
    devices: bool = False
    """A compiler: it has a choice of target devices, see `Options.device`."""
    native: bool = False
    """A compiler: its code runs no Python before it returns, so that calls from Python need not set
    a signal handler of their own."""
    limits: Cost | None = None
    """A compiler: the largest region that it accepts, to bound the compile time. The engine offers
    it a part of a larger region, or smaller regions; a region that cannot be made smaller is
    interpreted, with the reason in the journal."""
    tiers: Tiers | None = None
    """A compiler: it makes quick code, and good code for what runs long. Where `Options` say so its
    code leaves with LONG. None: it compiles at once at the level that is wanted."""
    references: bool = False
    """A compiler: it compiles code that uses references. It is not offered such a region else."""
    launches: bool = False
    """A compiler: its code leaves in front of launches, see `Options.launches`."""
    ranges: bool = False
    """A compiler: its code of a launch's loop has `Code.ranges`."""
    lanes: bool = False
    """A compiler: its code of a launch's loop may have `Code.lanes`."""
    known: bool = False
    """A compiler: its code of a launch's loop takes words for constant, see `Options.known`."""
    out_of_order: bool = False
    """Items of a launch above one that traps may be done."""
    heap: int | None = None
    """Bytes of heap that it can address; None: no limit but the engine's. A program that needs
    more traps with HEAP_EXHAUSTED, and a state with a larger heap is refused."""


class DirectEntry(NamedTuple):
    """`Artifact.enter` in two parts, the first of which is native code and no Python."""

    run: Callable[[int], int]
    """Runs the machine whose control block is at an address until control has to be given back;
    returns the status that it left in there. It sets ferryvm's floating-point environment and
    restores the thread's, so it may be called in any."""
    finish: Callable[[Machine, bool, int], Status]
    """Does what `enter` does after that, given machine, `counting` and the status: it may run the
    machine again. Not needed after HALT and HOST."""
    is_native: Callable[[], bool]
    """True if `run` runs no Python, whatever code is installed. It is read only if that matters,
    since it may have to load compilers."""
    launch: Callable[[Machine], Status | None] | None = None
    """Runs items of the launch for which `run` has left with PARALLEL, in ferryvm's floating-point
    environment. None: `run` goes on from there. LEAVE: `Artifact.enter` does. Raises SignalRaised,
    and KeyboardInterrupt, in an exact state."""
    resume: Callable[[Machine], int | None] | None = None
    """Goes on where `run` has left with LAUNCH, in any floating-point environment: takes pieces of
    the record, and runs them; the status that the machine was left with then. None: the engine has
    to take the next piece."""
    address: int = 0
    """The address of `run`, a C function `uint32_t f(ControlBlock *)`; 0 if it has none."""
    resumption: int = 0
    """The address of what `resume` calls, as `ferryvm.machine.item_map.RESUME`; 0: it calls none."""


class Artifact(abc.ABC):
    """A program prepared by an interpreter. Several machines may use one, one after another.

    docs/writing-a-backend.md has the whole contract of `enter`. The other methods are for
    interpreters with `Capabilities.cells`. A *cell* is before one instruction, in the code that
    counts instructions or in the code that does not. Any thread may change cells while the program
    runs, which sees the old cell or the new one.
    """

    waited: float = 0.0
    """Seconds that its programs have waited for compilers, in `enter`."""
    compiled: float = 0.0
    """Seconds that compilers have spent on it, in the foreground or background."""

    @abc.abstractmethod
    def enter(self, machine: Machine, counting: bool) -> Status:
        """Run from `machine.control.pc`; the status is the reason for the return.

        `control.status` has the status, too, with `trap`, `exit_id` or `wanted` if it is TRAP, HOST
        or GROW. `counting`: pay one unit of `control.fuel` for each instruction that completes, and
        return FUEL before the first instruction without fuel. An instruction that returns HALT,
        HOST, TRAP or GROW has not completed.
        """

    def direct(self, machine: Machine, counting: bool) -> DirectEntry | None:
        """A faster `enter` for one machine, None if there is none now. It is valid until its
        `finish` is called or the machine is entered by other means."""
        return None

    def native_callers(self, imports: Mapping[int, Signature]) -> Mapping[int, int] | None:
        """Addresses of callers for these host imports, which are native functions from here on; see
        `ferryvm.machine.native`. None, the default, if host calls always leave with HOST. Raises
        BackendError if they cannot be made."""
        return None

    def collector(self) -> int | None:
        """Address of a C function `uint64_t f(Request *)` that performs collections exactly as
        `ferryvm.machine.collection.collect`, for as long as the process runs. None, the default:
        they are performed in Python. Raises BackendError if it cannot be made, and
        `host_stack.NotYetError` while it is made: it is then asked for at the next collection."""
        return None

    def item_writer(self) -> int | None:
        """Address of a C function as `ferryvm.machine.item_map.WRITE`, for as long as the process
        runs. None, the default: the pieces of suspended items are made in Python. Raises as
        `collector`."""
        return None

    def host_loop(self) -> int | None:
        """Address of a C function as `ferryvm.machine.host_loop.HOST_LOOP`, for as long as the
        process runs. None, the default: host calls are performed by Python's loop. Raises as
        `collector`."""
        return None

    def bind_slots(self, control: ControlBlock) -> SlotCode | None:
        """Native code that runs the rest of suspended items by the instructions that a control
        block is bound to from now on: without cells, uncounted, in any number of threads. None, the
        default: there is none. Raises BackendError if it cannot be made."""
        return None

    def python_caller(self, form: CallForm) -> int | None:
        """Address of a caller as `ferryvm.machine.python_call`, for as long as the process runs.
        None, the default: calls of functions from Python enter by Python. Raises BackendError if it
        cannot be made."""
        return None

    def count(self, pc: int, times: int, counting: bool) -> None:
        """Return HOT before `pc` when control reaches it for the `times`-th time from now.

        The cell is then removed.
        """
        raise NotImplementedError(f"{type(self).__name__} has no cells")

    def counted(self, pc: int, counting: bool) -> int:
        """The remaining count of the cell that `count` installed; 0 if there is no such cell."""
        raise NotImplementedError(f"{type(self).__name__} has no cells")

    def install(self, pc: int, address: int, counting: bool) -> None:
        """Call the native function at `address` when control reaches `pc`.

        It is a C function `uint32_t f(ControlBlock *)` that returns a status, as `enter` does. On
        LEAVE the interpreter continues at `control.pc`, and ignores the cell there once; on THROW
        it continues at the handler, if there is one. `enter` returns any other status.
        """
        raise NotImplementedError(f"{type(self).__name__} has no cells")

    def remove(self, pc: int, counting: bool) -> None:
        """Remove the cell before `pc`, if there is one."""
        raise NotImplementedError(f"{type(self).__name__} has no cells")

    def metrics(self) -> Mapping[str, Mapping[str, object]]:
        """Metrics of backends about their work for it, by backend name: data that JSON can
        represent. Backends without metrics are omitted."""
        return {}


@record.dataclass(frozen=True)
class Finding:
    """A finding of a backend about this machine, for `ferry doctor`. Each text is one line."""

    subject: str
    """A device, a library, a folder."""
    facts: Mapping[str, str | int | float | bool] = record.field(default_factory=dict)
    """By unique short names; a name that ends in ` bytes` has a number of bytes."""
    problem: str = ""
    """The problem; empty if there is none."""
    remedy: str = ""
    """The remedy of the problem, preferably as commands to copy."""


class Backend(abc.ABC):
    """An execution engine: an `Interpreter` or a `Compiler`."""

    name: str
    """Its name for users; the same as in its `BackendEntry`."""
    version: str
    """The backend's version, for `ferry backends`."""
    protocol: int = 1
    """The version of this contract that it implements, 1 by default. Any other than
    PROTOCOL_VERSION is refused."""
    capabilities: Capabilities = Capabilities()

    def probe(self) -> str | None:
        """None if it is usable on this machine, else the reason why not."""
        return None

    def examine(self) -> Sequence[Finding]:
        """Its findings about this machine, with problems and remedies, also if it is not usable. It
        may take seconds; only `ferry doctor` calls it."""
        return ()


class Interpreter(Backend):
    """A backend that runs whole programs and can be entered at any reachable pc."""

    def accepts(self, program: Verified) -> str | None:
        """None if it can run this program, else the reason why not."""
        return None

    @abc.abstractmethod
    def prepare(self, program: Verified) -> Artifact:
        """The program in the backend's own form. Raises BackendError if that fails."""

    def prepare_soon(self, program: Verified) -> Artifact:
        """As `prepare`, for a program whose hot parts are compiled: as soon as it can be had,
        though it may run slower."""
        return self.prepare(program)

    def prepare_forced(self, program: Verified, forcing: frozenset[Forcing]) -> Artifact:
        """As `prepare`, for tests; `forcing` is a subset of `capabilities.forcing`. Raises
        BackendError if the backend declares a forcing that it does not implement."""
        raise BackendError(f"backend {self.name!r} declares what it does not implement: forcing")


@record.dataclass(frozen=True)
class Options:
    """Options of a compilation."""

    optimize: int = 2
    """Optimisation level, 0 to 3: compile time against the speed of the code."""
    counting: bool = False
    """Pay fuel, and leave if it does not suffice."""
    cache: bool = True
    """Use the cache on disk."""
    unseen: frozenset[tuple[int, int]] = frozenset()
    """Edges to omit (speculation): from the branch at the first pc to the second pc. A guard
    replaces each; if the edge would be taken, the guard fails and the code leaves before the
    branch."""
    guard_limit: int = 1000
    """Failures of one guard from which on the code returns GUARD; before, LEAVE."""
    observe: bool = False
    """Count the metrics of `Activity`."""
    forcing: frozenset[Forcing] = frozenset()
    """For tests."""
    device: str = ""
    """The target device, in the backend's own terms; empty: its default."""
    check: bool = False
    """Verify the IR before and after each pass; an IrError is then a fault of the compiler."""
    quick: bool = False
    """For tests: compile quickly, to code that may be slow. The compiler's own passes run as usual;
    a library such as LLVM runs at its lowest level."""
    natives: frozenset[int] = frozenset()
    """Host imports that are native functions: code may call them by `control.natives`, and leaves
    with HOST where the row there is zero."""
    launches: frozenset[tuple[int, int]] = frozenset()
    """Launches, by the pc of `launch.test` and their number in `control.launches`, in front of
    whose loop the code leaves with PARALLEL if more items are left than that word says. Only for a
    compiler that declares it."""
    known: frozenset[tuple[bool, int, int]] = frozenset()
    """Words that the code of a launch may take for constant (speculation), see
    `ferryvm.region.known_word.KnownWord`: only where it leaves with PARALLEL in front of the loop
    if one has another value, or where items run out of order, since the engine checks them there.
    Only for a compiler that declares it."""
    lanes: int = 0
    """Lanes of vectors in which items of a launch are run, where the compiler can do so; 0: as many
    as suit the target; 1: none."""
    recompile_after: int = 0
    """Work, see `Tiers`, each time after which the code leaves with LONG, where it may run that
    long; 0: it never does. Only for a compiler that has tiers."""


class Code(abc.ABC):
    """A compiled region. It is freed with the last reference to it."""

    address: int
    """A C function `uint32_t f(ControlBlock *)`: runs from the region's entry and returns a status,
    with control block and memory as `Artifact.enter` leaves them. LEAVE: the interpreter continues
    at `control.pc`. It is only called with `control.pc` at the region's entry."""
    is_from_cache: bool
    """True if it was loaded from the cache."""
    notes: Mapping[str, float]
    """Seconds of each step of the compilation, by name."""
    lanes: LaneEntry | None = None
    """Of a launch's loop, code that runs its items in lanes of vectors."""
    scalar: str = ""
    """The reason that it has none although it was to have some; empty otherwise."""
    ungrouped: Mapping[int, str] = MappingProxyType({})
    """By the pc of `launch.test` the reasons that items which wait at barriers do not run through
    parallel regions."""
    one_by_one: Mapping[int, str] = MappingProxyType({})
    """By the pc at which a parallel region begins the reasons that its items, which have branches
    or loops, do not run in lanes of vectors."""
    limited: str = ""
    """Less than the options request that was done, since it would have taken too long; empty
    otherwise."""

    @property
    def lost(self) -> str:
        """The reason that it cannot be run any more; then it returns LOST. Empty if it can."""
        return ""

    @property
    def long(self) -> str:
        """The work that it has done ("it ran 1000 cycles"), once it has left with LONG."""
        return ""

    @property
    def ranges(self) -> RangeRunner | None:
        """Runs items of a launch out of order, where the region is the launch's loop; None, the
        default: its code runs them as it likes, or in order."""
        return None

    @abc.abstractmethod
    def activity(self) -> Activity:
        """Its metrics so far."""

    def metrics(self) -> object:
        """Its metrics so far, in the backend's own form, for `Compiler.report`; None if
        there are none besides `activity`. It may be called on code that is lost."""
        return None


class Compiler(Backend):
    """A backend that compiles regions; an interpreter enters the code, which returns to it."""

    def accepts(self, region: Region) -> str | None:
        """None if it can compile the region, else the reason why not."""
        return None

    @abc.abstractmethod
    def compile(self, region: Region, options: Options) -> Code:
        """The region's code. Called in any thread; raises RefusalError for a region that it cannot
        compile, BackendError if it fails."""

    def chunk_loop(self) -> ChunkLoop | None:
        """Native functions by which threads run its code of a launch's loop, see
        `ferryvm.machine.chunk`; None if it has none, so that its items run in order. Called in any
        thread, only if `capabilities.native` is set; raises BackendError if they cannot be made."""
        return None

    def warm_up(self) -> None:
        """Import the libraries that compiling needs, so that the first compilation does not wait
        for them. Not called if nothing may be compiled; raises BackendError if it cannot compile at
        all."""
        return

    def check_device(self, device: str) -> None:
        """Raise FerryError with all reasons if `Options.device` cannot be this device. Called only
        if `capabilities.devices` is set, before the program runs."""
        return

    def device_names(self) -> Sequence[str]:
        """Names of the devices that it can compile for, as `Options.device` may be; none, the
        default, for a backend without a choice. Raises BackendError if it cannot list them."""
        return ()

    def versions(self, device: str) -> Mapping[str, str]:
        """The versions, by short names, that the speed of its code on a device depends on, besides
        its own: of a library, of a driver. A calibration of launches is stale once one changes."""
        return {}

    def report(self, all_metrics: Sequence[object]) -> Mapping[str, object]:
        """The backend's own metrics of a program, as data that JSON can represent. `all_metrics`:
        the results of `Code.metrics`, in the order in which sites of the program got hot."""
        return {}

    def show(self, region: Region, options: Options, stage: str) -> str:
        """A stage of the compilation as text. Raises BackendError for an unknown stage."""
        known = ", ".join(self.stages) or "nothing"
        raise BackendError(f"backend {self.name!r} shows no {stage!r}; it has: {known}")

    def picture(self, region: Region, options: Options, stage: str) -> str:
        """A stage of the compilation as a self-contained HTML page, see `ferryvm.page`. Raises
        BackendError for a stage without a picture."""
        known = ", ".join(self.pictures) or "nothing"
        raise BackendError(f"backend {self.name!r} has no picture of {stage!r}; it has: {known}")

    stages: tuple[str, ...] = ()
    """The stages that `show` accepts."""
    pictures: tuple[str, ...] = ()
    """The stages that `picture` accepts."""
