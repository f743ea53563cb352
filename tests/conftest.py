# SPDX-License-Identifier: Apache-2.0
"""Fixtures that every room of the tests shares."""

from __future__ import annotations

import collections
import functools
import gc
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.runner import runtestprotocol

import ferryvm
import ferryvm_backends
from ferryvm.cache import entry

from .bytecode import BytecodeFolder, PlainFinder, import_part
from .double.distribution import plant_campaign
from .native import NativeBuild, await_build
from .processor_time import used
from .quick import chosen_level
from .tier import leave_out_constants, mark_backends, mark_rotated
from .warm import start_worker

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_LONGEST = "--longest"
_SPENT = "--spent"

BACKENDS = tuple(entry.name for entry in ferryvm_backends.ferryvm_backends())

GROUPS = ("reference", "switch", "threaded"), ("llvm", "opencl", "vliw")
"""Interpreters and compilers: what each backend is to do runs on one of each by default."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    parser.addoption(
        _LONGEST,
        type=float,
        metavar="SECONDS",
        help="Fail if a test takes more of the processors than this.",
    )
    parser.addoption(
        _SPENT,
        type=Path,
        metavar="FILE",
        help="Write what tests took of the processors, by folder and each by itself.",
    )


sys.meta_path.insert(0, PlainFinder(("ferryvm", "ferryvm_backends", "hypothesis")))
_bytecode = BytecodeFolder()
_build = NativeBuild()


def pytest_configure(config: pytest.Config) -> None:
    """Give processes a place for bytecode, and have native code built, before workers start."""
    _bytecode.begin()
    # Nothing here multiplies matrices, and NumPy's threads for that spin at the start of each
    # process.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        _bytecode.fill(Path(package.__path__[0]) for package in (ferryvm, ferryvm_backends))
        _build.begin()


def pytest_unconfigure() -> None:
    """Take it away."""
    _build.end()
    _bytecode.end()


def pytest_xdist_auto_num_workers() -> int:
    """One process more than processors: tests wait for what they start, a tenth of the time on
    two."""
    return len(os.sched_getaffinity(0)) + 1


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Share the compilation of test modules among workers; there is no garbage to look for."""
    gc.disable()
    worker = getattr(session.config, "workerinput", None)
    if worker is not None:
        root = session.config.rootpath
        named = [Path(argument).absolute() for argument in session.config.args]
        folders = [path for path in named if path.is_dir() and path.is_relative_to(root)]
        number, count = int(worker["workerid"].removeprefix("gw")), worker["workercount"]
        import_part(root, folders, number % count, count)
    return (yield)


@pytest.hookimpl(tryfirst=True)  # marks count before tests are chosen by them
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort tests into tiers."""
    leave_out_constants()
    mark_rotated(items)
    mark_backends(items, GROUPS)


def pytest_collection_finish() -> None:
    """Have the garbage collector leave alone what was collected: ten thousand tests live to the
    end. It looks at what tests make less often than usual, as in the command; not less often than
    that, since machines in cycles of garbage hold mappings, of which a process has 65,530."""
    gc.enable()
    gc.freeze()
    gc.set_threshold(100_000, *gc.get_threshold()[1:])


_seconds: dict[str, float] = {}
"""What each test took of the processors, with its fixtures and child processes: a clock would blame
a test for whatever else the machine is busy with."""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    """Run a test and report it once, with all that it took, unless more than its call is to tell:
    a report to the process that shows them costs both processes a millisecond."""
    is_worker = hasattr(item.config, "workerinput")
    is_measured = any(item.config.getoption(name) is not None for name in (_LONGEST, _SPENT))
    if not is_worker:
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    before, collections = used() if is_measured else 0.0, _full_collections()
    with chosen_level(item):
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
    if _full_collections() > collections:
        gc.freeze()  # what is left lives on: the next one need not look at it, for half a second
    told = [each for each in reports if each.when == "call" or not each.passed]
    told[0].duration = sum(each.duration for each in reports)
    if is_measured:
        told[0].processor_seconds = used() - before  # type: ignore[attr-defined] # an attribute of ours
    for each in told:
        item.ihook.pytest_runtest_logreport(report=each)
    if not is_worker:
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _full_collections() -> int:
    """Collections of all garbage in this process so far."""
    return int(gc.get_stats()[-1]["collections"])


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note what a test took. A worker that dies makes no report: xdist does, without times."""
    took: float = getattr(report, "processor_seconds", 0.0)
    _seconds[report.nodeid] = _seconds.get(report.nodeid, 0.0) + took


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run whose tests take too long."""
    longest = session.config.getoption(_LONGEST)
    if longest is not None and session.exitstatus == 0 and _slow(longest):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    file: Path | None = session.config.getoption(_SPENT)
    if file is not None and not hasattr(session.config, "workerinput"):
        file.write_text("".join(f"{line}\n" for line in _spent()), encoding="utf-8")


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Tell which tests took too much."""
    longest = config.getoption(_LONGEST)
    slow = _slow(longest) if longest is not None else []
    if slow:
        terminalreporter.section(f"longer than {longest:g} s, so not for this tier", red=True)
        for name in slow:
            terminalreporter.write_line(f"{_seconds[name]:8.1f} s  {name}")


def _spent() -> Iterator[str]:
    """Seconds of folders, the most expensive first, and then of tests."""
    for level in (
        collections.Counter({"all": sum(_seconds.values())}),
        _sums(lambda name: name.partition("::")[0].rpartition("/")[0]),
        _sums(lambda name: name),
    ):
        yield from (f"{seconds:9.2f}  {name}" for name, seconds in level.most_common())


def _sums(key: Callable[[str], str]) -> collections.Counter[str]:
    sums: collections.Counter[str] = collections.Counter()
    for name, seconds in _seconds.items():
        sums[key(name)] += seconds  # type: ignore[assignment] # seconds are no integers
    return sums


def _slow(longest: float) -> list[str]:
    slow = [name for name, seconds in _seconds.items() if seconds > longest]
    return sorted(slow, key=lambda name: -_seconds[name])


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    """Each in-tree backend's name in turn."""
    return str(request.param)


@pytest.fixture(scope="session", autouse=True)
def _usable_backends() -> None:
    """A backend that silently did not run would make every comparison with it hollow. What else
    holds for all tests is set here, too: each fixture of all tests costs each of them something."""
    _make_simulators_quickly()
    _fork_workers_of_campaigns()
    _handle_sigint()
    await_build()
    program = ferryvm.assemble(".function main\nhalt\n")
    for name in BACKENDS:
        # Running it also builds native code, so that no test pays for that or sees the notice.
        assert ferryvm.run(program, name).statistics.backend == name


def _make_simulators_quickly() -> None:
    """LLVM at its lowest level makes native code of simulated programs in a fifth of the time;
    tests/backends/vliw/test_simulate.py tests other levels."""
    from ferryvm_backends.vliw.simulate import native  # where plugins are tested it takes long

    native.LARGE = 0


def _fork_workers_of_campaigns() -> None:
    """Their imports would take a third of a second each. Those that a command starts do start."""
    from ferryvm import child

    start = child._start

    @functools.wraps(start)
    def start_or_fork(command: Sequence[str], *arguments: Any, **named: Any) -> Any:
        is_worker = "ferryvm.testing.fuzz.worker" in command
        return (start_worker if is_worker else start)(command, *arguments, **named)

    child._start = start_or_fork


def _handle_sigint() -> None:
    """Tests may have been started with SIGINT ignored, as from a shell's background, and would hand
    that on to the commands that they run."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache directory of this test's own, empty; what was said of others counts no more."""
    monkeypatch.setattr(entry, "_reported", set())
    folder = tmp_path / "cache"
    monkeypatch.setenv("FERRYVM_CACHE_DIR", str(folder))
    return folder


@pytest.fixture(scope="session")
def campaign_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for PYTHONPATH with the backends and compilers that go wrong on some programs. All
    tests of a process share it, so that its modules are compiled once."""
    site = tmp_path_factory.mktemp("site")
    plant_campaign(site)
    return site


BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A browser to look at pages with."""
    from playwright.sync_api import sync_playwright  # few tests need it

    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"no browser is installed: none of {', '.join(BROWSERS)}")
    with sync_playwright() as playwright:
        # Tests may run as root, where Chromium's sandbox cannot; the pages are our own.
        started = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield started
        started.close()
