# SPDX-License-Identifier: Apache-2.0
"""Drivers that are there and offer no platform, and the commands that change it.

library, .icd file that is read     no platform: it cannot be loaded, or finds no hardware
library, no such file               it is there and not used: the commands make it known
no library, file                    the file is wrong
no library, a card                  the driver lacks its OpenCL part
"""

from __future__ import annotations

import dataclasses
import fnmatch
import os
import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

from ferryvm.backend import Finding
from ferryvm_backends.opencl.loader import (
    FILENAMES,
    VENDORS,
    Libraries,
    Places,
    Registration,
    files_in,
    icd_files,
    registrations,
)


@dataclasses.dataclass(frozen=True)
class Driver:
    """A vendor's driver, and its properties."""

    name: str
    library: str
    """A pattern for the name of its library."""
    platform: str
    """A regular expression for the name of its platform, in lower case."""
    file: str
    """Name for its .icd file."""
    again: str
    """The remedy if it is loaded and offers nothing."""


NVIDIA = Driver(
    "NVIDIA",
    "libnvidia-opencl.so.*",
    r"nvidia",
    "nvidia.icd",
    "see whether `nvidia-smi` lists the card; if not, start the container with its devices, or "
    "install the driver again",
)
INTEL = Driver(
    "Intel",
    "libintelocl.so*",
    r"intel(?!.*graphics)",
    "intel.icd",
    "`pip install --force-reinstall intel-opencl-rt`, or install the driver again",
)
POCL = Driver(
    "PoCL",
    "libpocl*.so*",
    r"portable computing language",
    "pocl.icd",
    "`pip install --force-reinstall pocl-binary-distribution`",
)
DRIVERS = (NVIDIA, INTEL, POCL)


def setting_findings(places: Places) -> Iterator[Finding]:
    """Findings about the environment variables of loaders."""
    named, configured = os.environ.get(VENDORS, ""), places.configured
    is_file = configured.suffix == ".icd" and configured.is_file()
    problem = ""
    if named and configured.is_dir():
        problem = "" if icd_files(configured) else f"the folder {configured} has no .icd file"
    elif (
        named and not is_file and not Libraries(places).is_loadable(Registration(configured, named))
    ):
        problem = f"there is no {named}, be it a folder, an .icd file or a library"
        problem += ", and drivers are not looked for anywhere else"
    if problem:
        yield Finding(VENDORS, problem=problem, remedy=f"unset {VENDORS}")
    if places.bundled and os.environ.get(FILENAMES):
        yield Finding(
            FILENAMES,
            problem="the loader that pyopencl brings does not know it",
            remedy=f"unset {FILENAMES}, and have {VENDORS} name a folder with an .icd file for each "
            "library",
        )


def driver_findings(places: Places, platforms: Iterable[str]) -> Iterator[Finding]:
    """Installed drivers that offer no platform; `platforms`: names of the offered ones."""
    libraries = Libraries(places)
    registered = registrations(places)
    names = [name.lower() for name in platforms]
    silent = [d for d in DRIVERS if not any(re.search(d.platform, name) for name in names)]
    reported = set()
    for registration in registered:
        known = next((d for d in DRIVERS if _is_of(registration, d)), None)
        # A name without a folder may be found in an unlisted place: judge by the result.
        is_in_use = known is not None and known not in silent
        if not is_in_use and not libraries.is_loadable(registration):
            reported.add(known)
            moved = libraries.find(known.library) if known in silent else None
            yield _not_loadable(registration, known, moved, places)
        elif known in silent:
            reported.add(known)
            yield _without_platform(registration, known, places)
    if places.is_one:  # the user selected one driver
        return
    for driver in silent:
        library = libraries.find(driver.library)
        if driver in reported:
            continue
        if library is not None:
            why = "no .icd file that is read names it"
            yield _unread(library, driver, driver.file, why, places)
        elif driver is NVIDIA and (card := _card(places)) is not None:
            yield Finding(
                f"driver of {driver.name}",
                problem=f"there is a card ({card}) and no libnvidia-opencl.so.1",
                remedy="install the driver's OpenCL library; a container gets it with "
                "NVIDIA_DRIVER_CAPABILITIES=compute,utility",
            )


def _is_of(registration: Registration, driver: Driver) -> bool:
    return fnmatch.fnmatchcase(Path(registration.library).name, driver.library)


def _card(places: Places) -> Path | None:
    """The first card of NVIDIA that this process could open; a container may have any of them."""
    cards = (node for node in files_in(places.nodes) if re.fullmatch(r"nvidia\d+", node.name))
    return min(cards, default=None)


def _not_loadable(
    registration: Registration, driver: Driver | None, moved: Path | None, places: Places
) -> Finding:
    """`moved`: where the library is."""
    file, remove = registration.file, f"rm {shlex.quote(str(registration.file))}"
    if not registration.library:
        return Finding(str(file), problem="it names no library", remedy=remove)
    problem = f"names {registration.library}, which is not found"
    if driver is not None and moved is not None:
        return _unread(moved, driver, file.name, f"{file} {problem}", places)
    again = f"install that driver again, or {remove}"
    return Finding(str(file), problem=f"it {problem}", remedy=again)


def _without_platform(registration: Registration, driver: Driver, places: Places) -> Finding:
    library = registration.library
    if "/" not in library and registration.file.parent == places.bundled:
        library = str(registration.file.parent / library)
    why = places.why_not_loaded(library)
    what = f": it cannot be loaded: {why}" if why else f", which loads{_cardless(driver, places)}"
    return Finding(
        f"driver of {driver.name}",
        {"library": library},
        f"no platform is offered by {registration.library}, named by {registration.file}{what}",
        driver.again,
    )


def _unread(library: Path, driver: Driver, file: str, why: str, places: Places) -> Finding:
    return Finding(
        f"driver of {driver.name}",
        {"library": str(library)},
        f"it is there and not used: {why}{_cardless(driver, places)}",
        _commands(library, file, places),
    )


def _cardless(driver: Driver, places: Places) -> str:
    """A doubt whether there is anything to drive."""
    if driver is not NVIDIA or _card(places) is not None:
        return ""
    return f"; there is no {places.nodes / 'nvidia0'} or the like, so perhaps no card either"


def _commands(library: Path, file: str, places: Places) -> str:
    """Commands that make the loader read a library in addition to the present ones."""
    configured = places.configured
    named = os.environ.get(VENDORS, "")
    if named and configured.is_dir() and os.access(configured, os.W_OK):
        return f"echo {shlex.quote(str(library))} > {shlex.quote(str(configured / file))}"
    own = shlex.quote(str(places.own))
    steps = [f"mkdir -p {own}"]
    if icd_files(configured):  # it is not read any more where OCL_ICD_VENDORS is set
        steps.append(f"cp {shlex.quote(str(configured))}/*.icd {own}")
    steps.append(f"echo {shlex.quote(str(library))} > {shlex.quote(str(places.own / file))}")
    return "; ".join([*steps, f"export {VENDORS}={own}"])
