# SPDX-License-Identifier: Apache-2.0
"""Files that the OpenCL loader reads, and the libraries for it to load.

    OCL_ICD_VENDORS          a folder of .icd files; or one .icd file, or a library, and no other
    else OPENCL_VENDOR_PATH  a folder
    else                     /etc/OpenCL/vendors
    beside any folder        pyopencl/.libs, where pip's pocl-binary-distribution puts its own

These are the places that ocl-icd searches, the loader in pyopencl's wheels (seen with
OCL_ICD_DEBUG=15 on pyopencl 2026.1); it does not know OCL_ICD_FILENAMES. An .icd file has the name
of a library for dlopen. The loader silently skips libraries that cannot be loaded.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fnmatch
import os
import platform
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import platformdirs

from ferryvm import child
from ferryvm.failure import one_line

VENDORS = "OCL_ICD_VENDORS"
VENDOR_PATH = "OPENCL_VENDOR_PATH"
FILENAMES = "OCL_ICD_FILENAMES"
"""The corresponding variable of Khronos' loader."""

_SECONDS = 30.0
"""The time limit of a command."""

_FOLDERS = (
    "/usr/local/nvidia/lib64",  # where container runtimes put a driver
    "/usr/local/nvidia/lib",
    f"/usr/lib/{platform.machine()}-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    f"{sys.prefix}/lib",  # pip's intel-opencl-rt
    "/opt/intel/oneapi/compiler/latest/lib",
)


def _ldconfig() -> str:
    """The content of the linker's cache, as `ldconfig -p` prints it; nothing where there is
    none."""
    for command in ("/sbin/ldconfig", "ldconfig"):
        with contextlib.suppress(OSError):
            return _output([command, "-p"])[1]
    return ""


def _why_not_loaded(library: str) -> str:
    """The reason that a library cannot be loaded, tried in a process that may die of it; empty if
    it can."""
    code = "import ctypes, sys\ntry: ctypes.CDLL(sys.argv[1])\nexcept OSError as e: print(e)"
    try:
        status, said = _output([sys.executable, "-c", code, library])
    except OSError:
        return ""
    said = one_line(said)
    return said or (f"a process that loads it ends with {status}" if status else "")


def _output(command: list[str]) -> tuple[int, str]:
    """Raises OSError."""
    done = child.run(command, _SECONDS)
    return done.code, done.output.decode(errors="replace")


@dataclasses.dataclass(frozen=True)
class Places:
    """The folders that are searched; tests have their own."""

    vendors: Path = Path("/etc/OpenCL/vendors")
    bundled: Path | None = None
    """pyopencl/.libs; None where pyopencl uses the system's loader."""
    folders: tuple[Path, ...] = tuple(map(Path, _FOLDERS))
    """Of libraries, besides the linker's."""
    nodes: Path = Path("/dev")
    own: Path = dataclasses.field(
        default_factory=lambda: platformdirs.user_config_path("OpenCL") / "vendors"
    )
    """The folder in which a user can have .icd files."""
    ldconfig: Callable[[], str] = _ldconfig
    why_not_loaded: Callable[[str], str] = _why_not_loaded

    @property
    def configured(self) -> Path:
        """The configured paths of the loader, existing or not."""
        named = os.environ.get(VENDORS) or os.environ.get(VENDOR_PATH)
        return Path(named) if named else self.vendors

    @property
    def is_one(self) -> bool:
        """True if OCL_ICD_VENDORS names one driver, and so turns off all others."""
        return bool(os.environ.get(VENDORS)) and not self.configured.is_dir()


@dataclasses.dataclass(frozen=True)
class Registration:
    """An .icd file, and the library that it names."""

    file: Path
    library: str


def registrations(places: Places) -> list[Registration]:
    """The .icd files that the loader reads, in its order."""
    if places.is_one:
        configured = places.configured
        files = [configured] if configured.suffix == ".icd" and configured.is_file() else []
    else:
        folders = [places.configured, *([places.bundled] if places.bundled else [])]
        files = [file for folder in folders for file in icd_files(folder)]
    return [Registration(file, _first_line(file)) for file in files]


def icd_files(folder: Path) -> list[Path]:
    try:
        return sorted(file for file in folder.iterdir() if file.suffix == ".icd")
    except OSError:
        return []


def _first_line(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace").partition("\n")[0]
    except OSError:
        return ""


class Libraries:
    """The libraries of the machine, as far as drivers are concerned."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._linked: dict[str, Path] = {}
        for name, path in _linked(places.ldconfig()):
            self._linked.setdefault(name, path)  # the linker takes the first

    def is_loadable(self, registration: Registration) -> bool:
        """True if dlopen finds the library in an .icd file."""
        name = registration.library
        if "/" in name:
            return Path(name).is_file()
        folders = _library_path()
        if registration.file.parent == self._places.bundled:  # the loader itself is there, too
            folders.append(registration.file.parent)
        return bool(name) and (name in self._linked or any((f / name).is_file() for f in folders))

    def find(self, pattern: str) -> Path | None:
        """A library whose name is like the pattern, wherever it is; the shortest name of it."""
        linked = [path for name, path in self._linked.items() if fnmatch.fnmatchcase(name, pattern)]
        for paths in (linked, *map(files_in, (*_library_path(), *self._places.folders))):
            like = [p for p in paths if fnmatch.fnmatchcase(p.name, pattern) and p.is_file()]
            if like:
                return min(like, key=lambda path: (len(path.name), path.name))
        return None


def _linked(text: str) -> Iterator[tuple[str, Path]]:
    """Name and path of each line of `ldconfig -p` that this process could load."""
    for line in text.splitlines():
        found = re.match(r"\s*(\S+) \(([^)]*)\) => (.+)", line)
        if found and "," in found[2]:  # `libc6` alone: of 32 bits
            yield found[1], Path(found[3])


def _library_path() -> list[Path]:
    named = os.environ.get("LD_LIBRARY_PATH", "")
    return [Path(folder) for folder in named.split(":") if folder]


def files_in(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []
