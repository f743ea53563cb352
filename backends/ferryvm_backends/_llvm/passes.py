# SPDX-License-Identifier: Apache-2.0
"""LLVM's passes over modules: in this process, or after many in a child that is renewed.

    module ─ bitcode ─> child ─ bitcode ─> module

llvmlite 0.50 never frees the instrumentation callbacks of a pass builder, 1.5 KiB for each run of
passes, and no builder can be used twice: LLVM leaves callbacks in it that refer to what is gone. So
runs are counted, and what they leak here is bounded by `HERE`, there by the child's end.

    python -m ferryvm_backends._llvm.passes PARENT     the child: requests on stdin, answers on stdout
"""

from __future__ import annotations

import atexit
import contextlib
import enum
import logging
import os
import signal
import struct
import subprocess
import sys
import threading
from typing import IO

import llvmlite.binding as llvm
from llvmlite.binding.newpassmanagers import NewPassManager

from ferryvm.backend import BackendError
from ferryvm.process import end_with_parent
from ferryvm_backends._llvm.codegen import loaded, target_machine
from ferryvm_backends._llvm.native import environment

HERE = 8_192
"""Runs in this process: they leak 12 MiB, and are spared the start of a child."""

RENEWED = 8_192
"""Runs after which a child is followed by another one."""

_log = logging.getLogger("ferryvm")


class Pipeline(enum.Enum):
    """Which passes are run."""

    LEVEL_0 = 0
    LEVEL_1 = 1
    LEVEL_2 = 2
    LEVEL_3 = 3
    SHORT = 4
    """Memory to registers, and what is simplified by that."""
    SHORTEST = 5
    """Memory to registers."""


def improve(module: llvm.ModuleRef, pipeline: Pipeline) -> llvm.ModuleRef:
    """The module after a pipeline; it may be the same one. Raises BackendError where the child
    ends."""
    with _lock:
        if _children.runs < HERE:
            _children.runs += 1
        else:
            answer = _children.ask(pipeline, module.as_bitcode())
            if answer is not None:
                return loaded(answer)
    _run(module, pipeline)
    return module


def _run(module: llvm.ModuleRef, pipeline: Pipeline) -> None:
    level = pipeline.value if pipeline.value <= Pipeline.LEVEL_3.value else 2
    tuning = llvm.create_pipeline_tuning_options(speed_level=level)
    if pipeline is Pipeline.LEVEL_0 or pipeline is Pipeline.LEVEL_1:
        tuning.loop_vectorization = tuning.slp_vectorization = False
    elif pipeline is Pipeline.LEVEL_2 or pipeline is Pipeline.LEVEL_3:
        tuning.loop_vectorization = tuning.slp_vectorization = True
    builder = llvm.create_pass_builder(target_machine(), tuning)
    if pipeline is Pipeline.SHORT or pipeline is Pipeline.SHORTEST:
        manager = llvm.create_new_module_pass_manager()
        if pipeline is Pipeline.SHORT:
            manager.add_instruction_combine_pass()
        manager.add_sroa_pass()
        if pipeline is Pipeline.SHORT:
            manager.add_instruction_combine_pass()
    else:
        manager = builder.getModulePassManager()
    try:
        manager.run(module, builder)
    finally:
        # llvmlite 0.50 frees no manager, of 30 to 100 KiB each: the first base of its class is one
        # that has nothing to free.
        NewPassManager._dispose(manager)
        manager.detach()


_HEADER = struct.Struct("<QQ")
"""A pipeline, or 0 in an answer; the length of the bitcode that follows."""


class _Children:
    """One child at a time."""

    def __init__(self) -> None:
        self.runs = 0
        """In this process."""
        self._child: subprocess.Popen[bytes] | None = None
        self._asked = 0
        self._is_told = False

    def ask(self, pipeline: Pipeline, bitcode: bytes) -> bytes | None:
        """The bitcode after a pipeline; None where no child can be started. Raises BackendError."""
        if self._child is not None and self._asked >= RENEWED:
            self.end()
        child = self._child or self._start()
        if child is None:
            return None
        assert child.stdin is not None
        assert child.stdout is not None
        self._asked += 1
        try:
            _send(child.stdin, pipeline.value, bitcode)
            answer = _received(child.stdout)
        except OSError:
            answer = None
        except BaseException:  # Ctrl-C: nobody will read the answer
            self.end()
            raise
        if answer is None:
            self.end()
            raise BackendError("llvm: the process that runs LLVM's passes has ended")
        return answer[1]

    def _start(self) -> subprocess.Popen[bytes] | None:
        command = [sys.executable, "-m", "ferryvm_backends._llvm.passes", str(os.getpid())]
        pipe = subprocess.PIPE
        try:
            self._child = subprocess.Popen(command, env=environment(), stdin=pipe, stdout=pipe)
        except OSError as error:
            if not self._is_told:
                _log.warning("LLVM's passes leak 1.5 KiB each: no process: %s", error.strerror)
                self._is_told = True
            return None
        self._asked = 0
        return self._child

    def end(self) -> None:
        """Have no child any more."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            self._close(child)
            child.wait()

    def forget(self) -> None:
        """Leave the child to another process."""
        child, self._child = self._child, None
        if child is not None:
            self._close(child)
            child.returncode = 0  # nothing that this process has to wait for

    def _close(self, child: subprocess.Popen[bytes]) -> None:
        for stream in (child.stdin, child.stdout):
            with contextlib.suppress(OSError):  # what was not sent yet
                assert stream is not None
                stream.close()


_lock = threading.Lock()
_children = _Children()


def _forget() -> None:
    """A forked process has a child of its own, if any."""
    global _lock
    _lock = threading.Lock()
    _children.forget()


os.register_at_fork(after_in_child=_forget)
atexit.register(_children.end)


def _send(stream: IO[bytes], number: int, content: bytes) -> None:
    stream.write(_HEADER.pack(number, len(content)) + content)
    stream.flush()


def _received(stream: IO[bytes]) -> tuple[int, bytes] | None:
    """Number and content of a message; None where there is none to the end."""
    header = stream.read(_HEADER.size)
    if len(header) < _HEADER.size:
        return None
    number, length = _HEADER.unpack(header)
    content = stream.read(length)
    return (number, content) if len(content) == length else None


def _serve() -> None:
    """Answer requests until there are none any more."""
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    while (request := _received(requests)) is not None:
        module = loaded(request[1])
        _run(module, Pipeline(request[0]))
        _send(answers, 0, module.as_bitcode())


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is for who asked
    end_with_parent(int(sys.argv[1]), lambda: None)  # the thread that started it may end before
    _serve()
