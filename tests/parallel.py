# SPDX-License-Identifier: Apache-2.0
"""Tests in processes that are forked from the one that has collected them.

    collect ─┬─> worker 0: claim a test, run it, send its report ...
             ├─> worker 1
             └─> worker 2         reports ──> this process, which shows them

So test modules are imported and tests collected once, where each worker of pytest-xdist does that
for itself. The tests of a module are a unit. A worker claims a unit that nobody has begun, runs its
tests one after another, and takes tests of the unit with most left once all are begun. Claims are
positions in shared memory, of which a lock is held that a dying process releases.

If a worker dies, the test that it ran has failed, and another worker replaces it.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import fcntl
import itertools
import os
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterable, Iterator, Sequence
from mmap import mmap
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any, NoReturn

import pytest

_OPTION = "numprocesses"

_GRACE = 5.0
"""Seconds that workers have to end after an interrupt."""

_NONE = -1


def add_option(parser: pytest.Parser) -> None:
    """Add the option for the number of workers."""
    # Short options in lower case are pytest's; this is xdist's, which has it so, too.
    parser.getgroup("workers")._addoption(
        "-n",
        f"--{_OPTION}",
        type=_number,
        default="auto",
        metavar="NUMBER",
        help="Processes that run tests; 0: this one; auto: one more than processors.",
    )


def _number(text: str) -> int:
    """One more than processors unless it is given: tests wait for what they start, a tenth of the
    time on two."""
    if text == "auto":
        return len(os.sched_getaffinity(0)) + 1
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor auto")
    return int(text)


def workers(config: pytest.Config) -> int:
    """The number of workers; 0 if tests run in this process."""
    number: int = config.getoption(_OPTION)
    return 0 if config.getoption("usepdb") or config.getoption("trace") else number


class Queue:
    """Tests, by their number, that processes claim."""

    def __init__(self, units: Iterable[Sequence[int]], number: int) -> None:
        """`number`: how many workers there will be in all."""
        self._units = list(units)
        positions, running = 2 + len(self._units), number
        self._cells = memoryview(mmap(-1, 4 * (positions + running))).cast("i")
        self._cells[positions:] = memoryview(b"\xff" * 4 * running).cast("i")
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the queue
        self._unit = 0

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        fcntl.lockf(self._file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN)

    def _left(self, unit: int) -> int:
        return len(self._units[unit]) - self._cells[2 + unit]

    def close(self) -> None:
        """Have it use no file any more."""
        self._file.close()

    def stop(self) -> None:
        """Have nobody claim any more."""
        self._cells[0] = 1

    def claim(self, *, is_first: bool = False) -> int | None:
        """A test that nobody has claimed; None if there is none."""
        with self._locked():
            if self._cells[0]:
                return None
            if is_first or not self._left(self._unit):
                if self._cells[1] < len(self._units):
                    self._unit = self._cells[1]
                    self._cells[1] += 1
                else:
                    self._unit = max(range(len(self._units)), key=self._left)
            if not self._left(self._unit):
                return None
            position = self._cells[2 + self._unit]
            self._cells[2 + self._unit] += 1
            return self._units[self._unit][position]

    def note(self, worker: int, test: int) -> None:
        """Note what a worker runs."""
        self._cells[2 + len(self._units) + worker] = test

    def noted(self, worker: int) -> int | None:
        """The test that a worker runs, or ran last."""
        test = self._cells[2 + len(self._units) + worker]
        return None if test == _NONE else test


class Worker:
    """This process as a worker."""

    def __init__(self, config: pytest.Config, connection: Connection) -> None:
        self._config, self._connection = config, connection
        self.test = _NONE

    def send(self, kind: str, content: object) -> None:
        """Tell the process that has collected the tests."""
        self._connection.send((kind, self.test, content))

    def report(self, report: pytest.TestReport) -> None:
        """Have it show a report."""
        hook = self._config.hook
        content = hook.pytest_report_to_serializable(config=self._config, report=report)
        self.send("report", content)

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str, location: Any
    ) -> None:
        """Have it show a warning."""
        told = (str(warning_message.message), warning_message.filename, warning_message.lineno)
        self.send("warning", (warning_message.category, *told, when, nodeid, location))


_WORKER = pytest.StashKey[Worker]()


def worker_of(config: pytest.Config) -> Worker | None:
    """This process as a worker, if it is one."""
    return config.stash.get(_WORKER, None)


class _Run:
    """The workers of a run, seen from the process that has forked them."""

    def __init__(self, session: pytest.Session) -> None:
        self._session, self._config = session, session.config
        self._missing = set(range(len(session.items)))
        """Tests without a report."""
        self._numbers = itertools.count()
        self._workers: dict[Connection, tuple[int, int]] = {}
        """By their connections: process and number of each."""

    def run(self, number: int) -> None:
        """Run all tests. Raises Failed or Interrupted, as pytest's own loop."""
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.showfspath = False  # files take turns
        try:
            self._share(number)
            while self._missing and not self._is_stopped:  # what workers had claimed that died
                self._share(1)
        except BaseException:
            self._end()
            raise
        if self._session.shouldfail:
            raise self._session.Failed(self._session.shouldfail)
        if self._session.shouldstop:
            raise self._session.Interrupted(self._session.shouldstop)

    @property
    def _is_stopped(self) -> bool:
        return bool(self._session.shouldfail or self._session.shouldstop)

    def _share(self, number: int) -> None:
        """Have so many workers run what is missing."""
        items = self._session.items
        units = [
            list(tests)
            for _, tests in itertools.groupby(
                sorted(self._missing), key=lambda test: items[test].nodeid.partition("::")[0]
            )
        ]
        # Each death of a worker costs a test, and the worker that replaces it has another number.
        queue = Queue(units, next(self._numbers) + number + len(self._missing) + 1)
        with contextlib.closing(queue):
            for _ in range(min(number, len(self._missing))):
                self._start(queue)
            while self._workers:
                for connection in wait(list(self._workers)):
                    self._receive(connection, queue)
                if self._is_stopped:
                    queue.stop()

    def _receive(self, connection: Any, queue: Queue) -> None:
        try:
            message = connection.recv()
        except (EOFError, OSError):
            self._lose(connection, queue)
        else:
            self._take(*message, connection)

    def _start(self, queue: Queue) -> None:
        number = next(self._numbers)
        base = self._config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined] # pytest's
        ours, theirs = Pipe(duplex=False)
        sys.stdout.flush()
        sys.stderr.flush()
        with warnings.catch_warnings():
            # Python warns of threads. What starts some here starts them anew in a forked process.
            warnings.simplefilter("ignore", DeprecationWarning)
            process = os.fork()
        if process == 0:
            for each in (ours, *self._workers):
                each.close()
            _work(self._session, queue, number, theirs, base / f"worker{number}")
        theirs.close()
        self._workers[ours] = process, number

    def _take(self, kind: str, test: int, content: Any, connection: Connection) -> None:
        hook, session = self._config.hook, self._session
        if kind == "report":
            report = hook.pytest_report_from_serializable(config=self._config, data=content)
            self._show(test, report)
        elif kind == "warning":
            category, message, file, line, when, nodeid, location = content
            told = warnings.WarningMessage(category(message), category, file, line)
            hook.pytest_warning_recorded.call_historic(
                kwargs={
                    "warning_message": told,
                    "when": when,
                    "nodeid": nodeid,
                    "location": location,
                }
            )
        elif kind == "fail":
            session.shouldfail = session.shouldfail or content
        elif kind == "stop":
            session.shouldstop = session.shouldstop or content
        elif kind == "error":
            raise AssertionError(f"a worker ended:\n{content}")
        else:
            assert kind == "done"
            os.waitpid(self._workers.pop(connection)[0], 0)
            connection.close()

    def _show(self, test: int, report: pytest.TestReport) -> None:
        self._missing.discard(test)
        item, hook = self._session.items[test], self._config.hook
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    def _lose(self, connection: Connection, queue: Queue) -> None:
        """A worker died: what it ran has failed."""
        process, number = self._workers.pop(connection)
        connection.close()
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        test = queue.noted(number)
        assert test is not None, f"a worker died before it ran a test: exit code {code}"
        item = self._session.items[test]
        message = f"the process that ran {item.nodeid} died: exit code {code}"
        report = pytest.TestReport(item.nodeid, item.location, {}, "failed", message, "call")
        self._show(test, report)
        if not self._is_stopped:
            self._start(queue)

    def _end(self) -> None:
        """End the workers that there are."""
        until = time.monotonic() + _GRACE
        processes = {process for process, _ in self._workers.values()}
        for number in (signal.SIGINT, signal.SIGKILL):
            for process in processes:
                os.kill(process, number)
            while processes and (number == signal.SIGKILL or time.monotonic() < until):
                processes = {each for each in processes if os.waitpid(each, os.WNOHANG) == (0, 0)}
                time.sleep(0.01)


def run(session: pytest.Session) -> bool:
    """Run tests in workers, if there are to be any, and if there is more than one test; whether it
    did."""
    number = workers(session.config)
    if session.config.getoption("collectonly") or session.testsfailed:
        return False
    if not number or len(session.items) < 2:
        return False
    _Run(session).run(number)
    return True


def _work(
    session: pytest.Session, queue: Queue, number: int, connection: Connection, folder: Path
) -> NoReturn:
    """Claim tests and run them, in a forked process."""
    config = session.config
    code = 1
    try:
        worker = config.stash[_WORKER] = Worker(config, connection)
        capture = config.pluginmanager.getplugin("capturemanager")
        # Files that are shared with other processes have a position that is shared, too.
        capture.stop_global_capturing()
        capture.start_global_capturing()
        folder.mkdir()
        config._tmp_path_factory._basetemp = folder  # type: ignore[attr-defined] # pytest's
        config.pluginmanager.register(worker)
        try:
            _run_tests(session, queue, number, worker)
        except pytest.exit.Exception as error:
            worker.send("stop", str(error))
        worker.send("done", None)
        code = 0
    except KeyboardInterrupt:
        pass
    except BrokenPipeError:
        pass  # there is nobody to tell
    except BaseException:  # noqa: BLE001 - the other process raises it
        with contextlib.suppress(OSError):
            connection.send(("error", _NONE, traceback.format_exc()))
    finally:
        with contextlib.suppress(BaseException):
            atexit._run_exitfuncs()
        os._exit(code)


def _run_tests(session: pytest.Session, queue: Queue, number: int, worker: Worker) -> None:
    test = queue.claim(is_first=True)
    while test is not None:
        # pytest tears down what the next test does not need.
        following = queue.claim()
        queue.note(number, test)
        worker.test = test
        item = session.items[test]
        nextitem = None if following is None else session.items[following]
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=nextitem)
        if session.shouldfail:
            worker.send("fail", session.shouldfail)
            break
        if session.shouldstop:
            worker.send("stop", session.shouldstop)
            break
        test = following
    session._setupstate.teardown_exact(None)
