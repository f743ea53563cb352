# SPDX-License-Identifier: Apache-2.0
"""Native code of an interpreter: from the cache, or built and put there."""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

import ferryvm
from ferryvm import architecture, cache
from ferryvm.backend import BackendError
from ferryvm.machine.control import ABI_VERSION
from ferryvm.machine.host_stack import NotYetError, Work, in_thread
from ferryvm.notice import Log
from ferryvm.thread import ThreadError
from ferryvm_backends._llvm import cache_entry
from ferryvm_backends._llvm.loader import NativeCode, self_contained

_log = Log("ferryvm")

_FEATURES = {"flags", "Features"}
"""Keys of a processor's features in the kernel's text: x86-64, AArch64."""

_CPUINFO_KEYS = (
    "vendor_id", "cpu family", "model", "model name", "stepping", "flags",
    "CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision", "Features",
)  # fmt: skip
"""Lines of /proc/cpuinfo by which a processor is known; others change from moment to moment."""

_CPUINFO_LENGTH = 1 << 14
"""Characters that are read of /proc/cpuinfo: its first processor, of hundreds."""

_PROCESSORS = ("x86_64", "amd64", "aarch64", "arm64")
"""The processors for which LLVM has the calling convention that handlers use."""


def _facts() -> list[str]:
    """Facts that native code depends on, besides the sources it is woven from."""
    return [ferryvm.__version__, str(ABI_VERSION), *_llvm_facts(), architecture.NAME, processor()]


def _llvm_facts() -> list[str]:
    """The version of LLVM that generates the code, read from its file because importing it is
    slow."""
    spec = importlib.util.find_spec("llvmlite")
    if spec is None or spec.origin is None:
        raise BackendError("llvmlite is not installed: there is nothing to make native code by")
    folder = Path(spec.origin).parent
    version = (folder / "_version.py").read_text(encoding="utf-8")
    binding = str(folder / "binding")
    libraries = sorted(name for name in os.listdir(binding) if name.startswith("libllvmlite."))
    found = [os.stat(os.path.join(binding, name)) for name in libraries]
    return [version, *(f"{each.st_size} {each.st_mtime_ns}" for each in found)]


def processor() -> str:
    """The model and features of this processor, which code is specific to.

    The kernel reports them; otherwise LLVM does, which is slow to load.
    """
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            first = file.read(_CPUINFO_LENGTH).partition("\n\n")[0]
    except OSError:
        first = ""
    lines = (line.partition(":") for line in first.split("\n"))
    values = {name.rstrip(): value.lstrip(" \t") for name, _, value in lines}
    facts = [f"{name}: {values[name]}" for name in _CPUINFO_KEYS if name in values]
    if not _FEATURES.isdisjoint(values):
        return "\n".join(facts)
    from ferryvm_backends._llvm.codegen import host_processor  # if the kernel does not report them

    return "\n".join(host_processor())


def _sources(names: Iterable[str]) -> list[Path]:
    """All files of packages, and modules, that native code is woven from, in a fixed order."""
    files = [Path(ferryvm.__file__).with_name("program.py")]  # the code record
    for name in names:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        if spec.submodule_search_locations is None and spec.origin is not None:
            files.append(Path(spec.origin))
        for location in spec.submodule_search_locations or ():
            files += sorted(
                Path(folder, name)
                for folder, _, names in os.walk(location)
                for name in names
                if name.endswith((".py", ".toml"))
            )
    return files


@functools.cache
def key(package: str, *others: str) -> str:
    """The key of code that is generated from a backend's sources and other packages', on this
    machine."""
    woven_from = ("ferryvm.isa", "ferryvm.machine", "ferryvm_backends._llvm", package, *others)
    return cache.key(_facts(), _sources(woven_from))


def processor_problem() -> str | None:
    """The reason that there is no native code for this processor; None if there is."""
    if architecture.NAME not in _PROCESSORS:
        return f"no native code for {architecture.NAME} (only for {', '.join(_PROCESSORS)})"
    return None


def load(content: bytes) -> NativeCode:
    """The code of a relocatable object, of which `ferryvm.binary` finds no fault."""
    found = self_contained(content)
    if found is None:
        from ferryvm_backends._llvm.codegen import ObjectCode  # it takes LLVM

        return ObjectCode(content)
    return found


def made(entry: cache.Entry, build: Callable[[], bytes]) -> tuple[NativeCode, bytes]:
    """The native code of a cache entry, and its notes; `build` makes the object code if there is
    none, by LLVM. That takes a tenth of a second and more, in which Ctrl-C has to be answered: so
    the main thread has it done by another one."""

    def payload() -> bytes:
        return cache_entry.packed(b"", build())

    content = entry.find(cache_entry.fault)
    if content is None:
        get = functools.partial(entry.get, payload, cache_entry.fault)
        is_main = threading.current_thread() is threading.main_thread()
        try:
            content = in_thread(get) if is_main else get()
        except ThreadError:
            content = get()
    notes, code = cache_entry.unpacked(content)
    return load(code), notes


_soon: dict[cache.Entry, Work[NativeCode]] = {}
"""Code that is made in the background."""

os.register_at_fork(after_in_child=_soon.clear)


def soon(entry: cache.Entry, loaded: Callable[[], NativeCode]) -> NativeCode:
    """The result of `loaded`, which uses a cache entry. Raises NotYetError if the entry has to be
    made first, which a thread does from then on: nobody needs to wait for code that has a slower
    form in Python."""
    work = _soon.get(entry)
    if work is None and not entry.path.exists():
        try:
            work = _soon[entry] = Work(loaded)
        except ThreadError:
            return loaded()
    if work is not None and not work.is_done:
        raise NotYetError(work)
    return loaded()


def entry_of(package: str) -> cache.Entry:
    """The cache entry of the native code of the backend in `package`."""
    return cache.Entry(_name(package), key(package))


_building: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
"""A lock for each package: of threads that need its code at once, as those that start several
backends do, one builds it and the others find it in the cache."""


def load_or_build(
    package: str, merge_tails: bool = True, is_quiet: bool = False
) -> tuple[NativeCode, bytes]:
    """The native code of the backend in `package`, and the notes that its builder left with it.

    Built only if the cache has none; a change in a source file makes a new entry. Without a usable
    cache each process builds it, which is reported. `merge_tails`: as for `build.compile_module`;
    `is_quiet`: nobody waits for it, so that it is not reported. Raises BackendError.
    """

    def announce() -> None:
        if not is_quiet:
            _log.info("building native code of %s, which takes some seconds", _name(package))

    def build() -> bytes:
        announce()
        return build_in_process(package, merge_tails)

    lock = _building[package]
    if not lock.acquire(blocking=False):
        announce()
        lock.acquire()
    try:
        payload = entry_of(package).get(build, cache_entry.fault)
    finally:
        lock.release()
    notes, code = cache_entry.unpacked(payload)
    return load(code), notes


def _name(package: str) -> str:
    return package.rpartition(".")[2]


def build_in_process(package: str, merge_tails: bool) -> bytes:
    """The result of `build`, run in a child process; Ctrl-C ends both."""
    from ferryvm import child  # only where the cache has none

    command = [sys.executable, "-m", "ferryvm_backends._llvm.build", package, str(os.getpid())]
    if not merge_tails:
        command.append("--keep-tails-apart")
    try:
        done = child.run(command, environment=child.environment())
    except OSError as error:
        message = f"{_name(package)}: cannot start {sys.executable!r} to build native code"
        raise BackendError(f"{message}: {error.strerror}") from None
    if done.code:
        cause = (done.errors.strip().splitlines() or [child.ending(done.code)])[-1]
        raise BackendError(f"{_name(package)}: building native code failed: {cause}")
    return done.output
