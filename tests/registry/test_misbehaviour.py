# SPDX-License-Identifier: Apache-2.0
"""Plugins that do what nobody should: each is one line, and ferry goes on. docs/plugins.md promises
what these tests hold it to."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import click
import pytest

import ferryvm
from ferryvm import crash_note, process, time_limit
from ferryvm.cli.plugin_command import Brought
from ferryvm.delivery import Delivery
from ferryvm.hooks import CommandEntry
from ferryvm.plugin import Plugin, Plugins

from .. import command
from ..double.distribution import GOOD, plant, state_of_its_own
from ..double.registry import plugin as plugin_of
from .raising import Bomb
from .test_hook import hooked, policy, run

ROOT = Path(__file__).parents[2]


def ferry(site: Path, *arguments: str, **environment: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command that sees the planted distributions."""
    path = os.pathsep.join(filter(None, (str(site), os.environ.get("PYTHONPATH"))))
    environment = {
        **os.environ,
        "PYTHONPATH": path,
        "XDG_STATE_HOME": state_of_its_own(site / "state"),
        **environment,
    }
    return command.ferry(*arguments, environment=environment)


# --- at import ------------------------------------------------------------------------------

AT_IMPORT = {
    "bomb": (
        "class E(Exception):\n"
        "    def __str__(self): raise RuntimeError('str')\n"
        "    __repr__ = __str__\n"
        "raise E()"
    ),
    "pressing": "raise KeyboardInterrupt",
    "base": "class Own(BaseException): pass\nraise Own('mine')",
    "large": "raise ValueError('x' * 50_000_000)",
    "deep": "def f(): f()\nf()",
    "lines": "raise ValueError('a\\nb\\x1b[2J')",
}

CHANGING = """
import os, signal, sys, threading, time, warnings
print("printed at import")
sys.stdout.write("written at import\\n")
os.chdir("/")
sys.setrecursionlimit(77_777)
sys.excepthook = sys.unraisablehook = lambda *_: os._exit(9)
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
sys.stdout = sys.stderr
warnings.simplefilter("error")
threading.Thread(target=time.sleep, args=(1000,)).start()
import atexit
"""


def test_what_a_plugin_does_at_import_is_one_line_and_no_output(site: Path) -> None:
    """All at once: a process takes a second to start."""
    for name, source in AT_IMPORT.items():
        plant(site, name, source)
    plant(site, "changing", CHANGING + GOOD.format(name="first"))
    code, out, err = ferry(site, "backends", "--json")
    document = json.loads(out)
    assert code == 0
    reasons = {
        line["source"]: line["reason"] for line in document["backends"] if line["state"] == "broken"
    }
    assert set(reasons) == {f"{name}:{name}" for name in AT_IMPORT}
    for name, reason in reasons.items():
        assert reason.startswith(f"plugin {name} does not load: ")
        assert reason.isprintable()
        assert len(reason) < 3000
    assert "E: its text cannot be had, RuntimeError was raised" in reasons["bomb:bomb"]
    usable = {line["name"] for line in document["backends"] if line["state"] == "usable"}
    assert {"first", "threaded"} <= usable
    assert err == "printed at import\nwritten at import\n"
    (warning,) = document["warnings"]
    assert warning == (
        "loading plugin changing:changing changed sys.stdout, sys.excepthook, sys.unraisablehook, "
        "the working directory, the recursion limit, the handler of SIGINT, the handler of SIGTERM, "
        "the warnings filter: put back"
    )


def test_the_next_run_says_which_plugin_ended_the_process(site: Path, tmp_path: Path) -> None:
    program = tmp_path / "p.skiff"
    program.write_text("(print! 7)")
    plant(site, "leaving", "import os\nif os.environ.get('LEAVE'): os._exit(0)")
    assert ferry(site, "run", str(program), LEAVE="1") == (0, "", "")
    code, out, err = ferry(site, "run", str(program))
    assert (code, out) == (0, "7\n")
    assert err == (
        "ferry: an earlier run of ferry ended while it was loading plugin leaving:leaving; update or "
        "uninstall leaving, or leave it out of FERRYVM_PLUGINS\n"
    )
    assert ferry(site, "run", str(program)) == (0, "7\n", "")


STUCK = """
import threading
from ferryvm.backend import Interpreter
from ferryvm.hooks import BackendEntry, hookimpl

class Small(Interpreter):
    name, version, protocol = "probing", "1", 1
    def probe(self):
        while True:
            pass
    def prepare(self, program):
        raise NotImplementedError

@hookimpl
def ferryvm_backends():
    return [BackendEntry("probing", Small), BackendEntry("loading", threading.Event().wait)]
"""
DEAF = """
import time
while True:
    try:
        time.sleep(1000)
    except BaseException:
        pass
"""


def test_a_plugin_that_never_returns_is_left_out_and_named(site: Path) -> None:
    plant(site, "sleeping", "import time\ntime.sleep(1000)")
    plant(site, "stuck", STUCK)
    code, out, _ = ferry(site, "backends", "--json", FERRYVM_PLUGIN_SECONDS="0.5")
    lines = json.loads(out)["backends"]
    late = "TimeLimitError: it took longer than 0.5 s, see FERRYVM_PLUGIN_SECONDS"
    reasons = {each["name"]: each["reason"] for each in lines if each["state"] == "broken"}
    remedy = "update or uninstall {0}, or leave it out of FERRYVM_PLUGINS"
    assert code == 0
    assert reasons.keys() == {"-", "probing", "loading"}
    assert reasons["-"] == (
        f"plugin sleeping:sleeping does not load: {late} (sleeping_plugin.py:2 in <module>); "
        f"{remedy.format('sleeping')}"
    )
    assert re.fullmatch(
        rf"backend 'loading' of stuck:stuck does not load: {late} \(threading.py:\d+ in wait\); "
        rf"{remedy.format('stuck')}",
        reasons["loading"],
    )
    assert reasons["probing"] == (
        f"backend 'probing': its probe failed: {late} (stuck_plugin.py:9 in probe); "
        f"{remedy.format('stuck')}"
    )
    assert {"switch", "llvm"} <= {each["name"] for each in lines if each["state"] == "usable"}


def test_a_plugin_that_goes_on_after_its_time_ends_ferry_with_a_line(site: Path) -> None:
    plant(site, "deaf", DEAF)
    code, out, err = ferry(site, "backends", FERRYVM_PLUGIN_SECONDS="0.5")
    assert (code, out) == (2, "")
    assert err == (
        "ferry: loading plugin deaf:deaf took longer than 0.5 s, and goes on; see "
        "FERRYVM_PLUGIN_SECONDS; update or uninstall deaf, or leave it out of FERRYVM_PLUGINS\n"
    )


def test_in_a_process_of_others_a_plugin_takes_the_time_it_wants(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Signals are not ours there."""
    monkeypatch.setenv(time_limit.VARIABLE, "0.001")
    before = signal.getsignal(signal.SIGALRM)
    with time_limit.limited("waiting"):
        assert signal.getsignal(signal.SIGALRM) is before
        threading.Event().wait(0.05)


def test_a_limit_that_is_no_number_of_seconds_is_one_line(site: Path) -> None:
    plant(site, "good", GOOD.format(name="first"))
    code, out, err = ferry(site, "backends", FERRYVM_PLUGIN_SECONDS="soon")
    assert (code, out) == (2, "")
    assert err == "ferry: FERRYVM_PLUGIN_SECONDS=soon is not a number of seconds above 0\n"
    assert ferry(site, "backends", FERRYVM_PLUGIN_SECONDS="inf")[0] == 0


def test_a_note_is_told_once_and_not_while_its_process_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    child = (
        "import os; from ferryvm import crash_note\n"
        "with crash_note.noted('loading x\\ny'): os._exit(0)"
    )
    with crash_note.noted("loading mine"):
        for _ in range(2):
            subprocess.run([sys.executable, "-c", child], check=True, timeout=60)
        assert crash_note.left_behind() == ["loading x y"] * 2
        assert crash_note.left_behind() == []
        assert len(list(crash_note.folder().iterdir())) == 1
    assert list(crash_note.folder().iterdir()) == []


def test_who_has_no_plugins_writes_no_notes(site: Path, tmp_path: Path) -> None:
    assert ferry(site, "run", "missing.skiff", FERRYVM_PLUGINS="none")[0] == 2
    assert not (site / "state" / "ferryvm" / "loading").exists()


# --- events ---------------------------------------------------------------------------------


def test_a_listener_that_blocks_holds_no_program() -> None:
    never = threading.Event()
    found = hooked(ferryvm_placement=lambda event: never.wait())
    try:
        assert run(found, policy()) == "40\n"
        (fault,) = found.faults
        assert re.fullmatch(
            r"plugin p did not take its events within 1 s; \d+ more were not told to it, and it is "
            r"told of none any more",
            fault.message,
        )
        assert run(found, policy()) == "40\n"
        assert len(found.faults) == 1
    finally:
        never.set()


def test_events_that_a_full_queue_has_no_room_for_are_counted() -> None:
    said: list[str] = []
    told: list[object] = []
    may_go, has_begun = threading.Event(), threading.Event()

    def tell(_hook: str, event: object) -> None:
        has_begun.set()
        may_go.wait()
        told.append(event)

    delivery = Delivery("p", tell, said.append, longest=60, most=3)
    delivery.put("h", 0)
    has_begun.wait()
    for event in range(1, 10):
        delivery.put("h", event)
    may_go.set()
    delivery.settle()
    assert told == [0, 1, 2, 3]
    assert said == ["was too slow: 6 events were not told to it"]


# --- commands -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "what"),
    [
        (ValueError("no"), "failed: ValueError: no"),
        (Bomb(), "failed: Bomb: its text cannot be had, SystemExit was raised"),
        (SystemExit("text"), "failed: SystemExit: text"),
        (KeyboardInterrupt(), "failed: KeyboardInterrupt"),
        (SystemExit(3), None),
        (ferryvm.FerryError("told"), None),
        (click.UsageError("told"), None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_a_command_of_a_plugin_raises_is_one_line(
    error: BaseException, what: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "owner", process.Owner(has_come=lambda: False))
    plugins = Plugins(discover=False)
    entry = CommandEntry("greet", lambda: click.Command("greet"))
    hooks = plugin_of(ferryvm_commands=lambda: [entry])
    plugins.register(hooks, Plugin("p"))
    fault = Brought(plugins, []).fault("greet", error)
    assert (fault is None) == (what is None)
    if fault is not None:
        assert str(fault).startswith(f"command 'greet' of p {what}")


COMMANDS = """
import click, os, sys
from ferryvm.hooks import CommandEntry, hookimpl

class Bad(click.Command):
    def get_short_help_str(self, limit=45): raise RuntimeError("no help")

@click.command()
@click.argument("how")
def act(how):
    print("output of act")
    if how == "raise": raise BaseException("mine")
    return {"text": "x", "large": 256}.get(how, 7)

@hookimpl
def ferryvm_commands():
    print("printed in a hook")
    return [CommandEntry("act", lambda: act), CommandEntry("bad", lambda: Bad("bad"))]
"""


def test_a_command_prints_to_stdout_and_ends_as_it_may(site: Path) -> None:
    plant(site, "tally", COMMANDS)
    assert ferry(site, "act", "x") == (7, "output of act\n", "printed in a hook\n")
    code, out, err = ferry(site, "act", "raise")
    assert (code, out) == (2, "output of act\n")
    assert re.search(
        r"^ferry: command 'act' of tally:tally failed: BaseException: mine \(", err, re.MULTILINE
    )
    code, _, err = ferry(site, "act", "large")
    assert (code, err.count("\n")) == (2, 2)
    assert (
        "command 'act' of tally:tally returned 256, where None or an exit code is expected" in err
    )
    code, out, err = ferry(site, "--help")
    assert code == 0
    assert "  act" in out
    assert "command 'bad' of tally:tally cannot be listed: RuntimeError: no help" in err


# --- pytest ---------------------------------------------------------------------------------


def test_pytest_works_although_a_plugin_is_broken(site: Path, tmp_path: Path) -> None:
    plant(site, "bomb", AT_IMPORT["bomb"])
    (tmp_path / "test_it.py").write_text(
        "BACKEND = 'switch'\ndef test_it(ferry_backend):\n    assert ferry_backend == 'switch'\n"
    )
    path = os.pathsep.join(filter(None, (str(site), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": path,
            "XDG_STATE_HOME": state_of_its_own(tmp_path / "state"),
        },
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout


# --- documentation --------------------------------------------------------------------------


def test_every_promise_of_the_page_names_a_test_that_there_is() -> None:
    page = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
    section = page.partition("\n## What happens on a mistake")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 10
    for row in rows:
        names = re.findall(r"`([\w/]+\.py)::(test_\w+)`", row)
        assert names, f"no test: {row}"
        for file, name in names:
            text = (ROOT / "tests" / file).read_text(encoding="utf-8")
            assert f"def {name}(" in text, f"{file} has no {name}"
