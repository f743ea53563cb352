# SPDX-License-Identifier: Apache-2.0
"""A run that stays in an interpreter loads what it needs and nothing else: what it imports takes
longer than what it does."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ferryvm.own_plugin import alone
from ferryvm.plugin import GROUP, OWN

FOR_OTHERS = {
    "numpy": "states, traps, compilers",
    "click": "options, help and faults of the command line",
    "ferryvm.cli.command": "options, help and faults of the command line",
    "ferryvm.cli.run_failure": "traps",
    "dataclasses": "metrics, reports; classes of a run are records",
    "inspect": "dataclasses",
    "platform": "reports; `architecture` names the processor",
    "tomli": "policies in files",
    "datetime": "tomli",
    "ferryvm.policy.check": "policies in files",
    "llvmlite": "making native code; what is cached has a loader of its own",
    "pyopencl": "kernels",
    "hypothesis": "tests",
    "pydantic": "checking policies and machines",
    "rich": "tables and progress",
    "jinja2": "pages",
    "prompt_toolkit": "the repl",
    "platformdirs": "systems other than Linux",
    "importlib.metadata": "who has plugins",
    "email": "importlib.metadata",
    "subprocess": "making native code",
    "tempfile": "a full disk",
    "secrets": "nobody",
    "random": "tempfile",
    "shutil": "tempfile",
    "difflib": "messages",
    "json": "metrics",
    "logging": "notices",
    "pluggy": "plugins",
    "queue": "what got hot; plugins that listen",
    "shlex": "messages",
    "hashlib": "images; the cache has digests without OpenSSL",
    "fcntl": "plugins",
    "zlib": "images",
    "unicodedata": "messages with a line of source",
    "ferryvm.crash_note": "plugins",
    "ferryvm.delivery": "plugins that listen",
    "ferryvm.testing": "comparing backends",
    "ferryvm.image": "images and states",
    "ferryvm.asm": "assembly",
    "ferryvm.machine.object_memory": "programs with references",
    "ferryvm.machine.object_space": "programs with references",
    "ferryvm.machine.collection": "programs with references",
    "ferryvm.machine.element_transfer": "programs with references",
    "ferryvm.machine.host_array": "programs with references",
    "ferryvm.ir": "compilers",
    "ferryvm.compiler": "compilers",
    "ferryvm.region.graph": "what got hot",
    "ferryvm.policy.match": "what got hot",
    "ferryvm.engine.compilation": "what got hot",
    "ferryvm.engine.saved": "states",
    "ferryvm.engine.explain": "ferry explain",
    "ferryvm.engine.host_declaration": "host functions of one's own",
    "ferryvm.engine.host_module": "--hosts",
    "ferryvm.engine.shadow": "policies with a shadow",
    "ferryvm_backends.llvm": "what got hot",
    "ferryvm_backends.opencl": "who asks for it",
    "ferryvm_backends.vliw": "who asks for it",
    "ferryvm_backends.switch": "who asks for it",
    "ferryvm_backends.reference": "who asks for it",
    "ferryvm_backends._llvm.codegen": "making native code",
    "ferryvm_backends._llvm.handler": "making native code",
    "ferryvm_backends._llvm.ir": "making native code",
    "ferryvm_backends._llvm.native_caller": "native host functions",
}
"""Modules that such a run must not import, with what they are for."""


def imported(*arguments: str) -> set[str]:
    """Names of the modules that a command imports, packages of them included."""
    command = [sys.executable, "-X", "importtime", "-m", "ferryvm.cli", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    names = re.findall(r"^import time: +\d+ \| +\d+ \| +([\w.]+)$", ended.stderr, re.MULTILINE)
    return {name[: dot.start()] for name in names for dot in re.finditer(r"\.|$", name)}


@pytest.mark.parametrize("backend", [(), ("--backend", "threaded")], ids=["policy", "threaded"])
def test_a_run_imports_no_module_that_is_for_others(
    tmp_path: Path, backend: tuple[str, ...]
) -> None:
    file = tmp_path / "hello.skiff"
    file.write_text("(print! 42)", encoding="utf-8")
    imported("run", str(file), *backend)  # it may have to make the interpreter
    found = imported("run", str(file), *backend)
    assert "ferryvm.skiff" in found
    wrong = found & FOR_OTHERS.keys()
    if alone(GROUP, OWN) is None:  # the environment has plugins
        wrong -= {"importlib.metadata", "email", "tempfile", "random", "shutil", "platformdirs"}
        wrong -= {"dataclasses", "datetime", "inspect", "platform"}
        wrong -= {"ferryvm.crash_note", "fcntl", "hashlib", "logging", "pluggy", "zlib"}
    assert not wrong, {name: FOR_OTHERS[name] for name in sorted(wrong)}


def test_a_worker_of_a_campaign_begins_without_what_findings_and_files_take() -> None:
    """It is started anew after each crash."""
    code = "import sys, ferryvm.testing.fuzz.worker; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    others = {"pydantic", "rich", "hypothesis", "ferryvm.testing.disagreement"}
    assert not others & set(done.stdout.split())


def test_classes_of_a_run_are_made_quickly(tmp_path: Path) -> None:
    """By `record` and `named_tuple`: others take three to six times as long, in each run."""
    file = tmp_path / "hello.skiff"
    file.write_text("(print! 42)", encoding="utf-8")
    imported("run", str(file))  # it may have to make the interpreter
    slow = set()
    for name in imported("run", str(file)) - {"ferryvm.record", "ferryvm.named_tuple"}:
        found = importlib.util.find_spec(name) if name.startswith("ferryvm") else None
        if found is not None and found.origin is not None:
            text = Path(found.origin).read_text(encoding="utf-8")
            if re.search(
                r"^@(dataclasses\.)?dataclass\b|^from typing .*NamedTuple", text, re.MULTILINE
            ):
                slow.add(name)
    assert slow == set()


def test_what_is_for_others_is_there_for_them() -> None:
    """So that a module which was renamed does not pass unseen."""
    ours = [name for name in FOR_OTHERS if name.startswith("ferryvm")]
    assert [name for name in ours if importlib.util.find_spec(name) is None] == []
