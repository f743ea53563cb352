# SPDX-License-Identifier: Apache-2.0
"""Devices: their list, their capabilities, and their names.

""                   the one in FERRYVM_OPENCL_DEVICE; without it a CPU, else the first device
"cpu", "gpu"         the first of that kind
"PLATFORM:NAME"      the first whose platform's and own name have these in them, in any case;
                     either part may be empty
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
from collections.abc import Iterator, Sequence
from typing import Any

from ferryvm.backend import BackendError
from ferryvm.float_environment import in_ours
from ferryvm_backends.opencl import pocl_target

POCL = "Portable Computing Language"
_SERIAL = ("basic", "cpu-minimal")
"""Prefixes of the names of PoCL's device without threads, in its older and newer versions."""

ENVIRONMENT = "FERRYVM_OPENCL_DEVICE"
"""Names the device where nothing else does."""

POCL_DEVICES = "POCL_DEVICES"
_POCL_DEVICES = "basic pthread"
"""PoCL's devices. A kernel of one work-item is entered in 1.2 us on `basic`, which runs it in the
calling thread, and in 10 to 47 us on `pthread`, the only one that PoCL offers by itself."""


@dataclasses.dataclass(frozen=True)
class Device:
    """A device, and its capabilities."""

    platform: str
    platform_version: str
    place: int
    """Its number among the devices of its platform."""
    name: str
    kind: str
    """cpu, gpu, accelerator or other."""
    version: str
    driver: str
    has_f64: bool
    has_exact_f32: bool
    """Arithmetic of f32 rounds correctly, division and square root by f64 if need be, and denormal
    numbers are preserved."""
    has_atomics_64: bool
    shares_memory: bool
    """Its memory is the host's."""
    is_little_endian: bool
    address_bits: int
    memory: int
    """Bytes."""
    largest_buffer: int
    """Bytes."""
    caches_builds: bool
    """Its driver caches builds on disk itself."""
    target: str | None = ""
    """The processor for which its driver compiles; empty if the driver's own choice works, None if
    it does not and no name is known."""
    divides_f32: bool = True
    """Its own division and square root of f32 round correctly. Those of f64, rounded to f32, do,
    too: f64 has more than twice as many bits (Figueroa, When is double rounding innocuous?,
    1995)."""
    handle: Any = dataclasses.field(default=None, compare=False, repr=False)
    """pyopencl's."""

    @property
    def identity(self) -> tuple[str, int, str]:
        """Identity of the device in other processes of this machine."""
        return self.platform, self.place, self.name

    @property
    def is_cpu(self) -> bool:
        """True if it is the host's processor."""
        return self.kind == "cpu"

    @property
    def is_serial(self) -> bool:
        """True for PoCL's device that runs one work-item after another, in the calling thread."""
        return self.platform == POCL and self.name.startswith(_SERIAL)

    @property
    def is_wrapped(self) -> bool:
        """True if a machine's memory is wrapped for it; else it is copied.

        Not for a GPU that shares the host's: it need not see the host's interrupt flag, so its
        kernels run in slices.
        """
        return self.is_cpu and self.shares_memory

    @property
    def problem(self) -> str | None:
        """The reason that nothing at all can be run on it."""
        if not self.is_little_endian:
            return "it is big-endian"
        if self.address_bits != 64:
            return f"it has addresses of {self.address_bits} bits, not of 64"
        if self.target is None:
            return "its compiler is older than this processor, and builds nothing for it"
        return None

    def __str__(self) -> str:
        return f"{self.platform}:{self.name}"


@contextlib.contextmanager
def _pocl_devices() -> Iterator[None]:
    """Make PoCL offer its fast device, unless the user has chosen its devices."""
    if POCL_DEVICES in os.environ:
        yield
        return
    os.environ[POCL_DEVICES] = _POCL_DEVICES
    try:
        yield
    finally:
        os.environ.pop(POCL_DEVICES, None)


@functools.cache
@in_ours  # a driver's threads inherit the environment of the one that starts them
def devices() -> tuple[Device, ...]:
    """Every device of every platform. Raises BackendError where there is no platform."""
    try:
        import pyopencl as cl
    except ImportError as error:
        raise BackendError(
            f"opencl: pyopencl cannot be imported: {error}; `pip install pyopencl`"
        ) from None
    try:
        with _pocl_devices():
            return tuple(_devices(cl))
    except cl.Error as error:
        if "PLATFORM_NOT_FOUND" in str(error):
            raise BackendError(f"opencl: {no_platform()}") from None
        raise BackendError(f"opencl: platforms cannot be listed: {error}") from None


def no_platform() -> str:
    """The remedy if no platform is found."""
    vendors = os.environ.get("OCL_ICD_VENDORS")
    if vendors:
        return (
            f"no OpenCL platform: OCL_ICD_VENDORS is {vendors!r}, which names no usable .icd file; "
            "unset it, or have it name a folder of .icd files"
        )
    return "no OpenCL platform here: `pip install pocl-binary-distribution`, or install a driver"


def _devices(cl: Any) -> Iterator[Device]:
    for platform in cl.get_platforms():
        try:
            found = platform.get_devices()
        except cl.Error:  # a driver without hardware for it
            continue
        for place, handle in enumerate(found):
            yield _described(cl, platform, place, handle)


def _described(cl: Any, platform: Any, place: int, handle: Any) -> Device:
    from pyopencl.characterize import has_src_build_cache

    kinds = cl.device_type
    by_flag = ((kinds.CPU, "cpu"), (kinds.GPU, "gpu"), (kinds.ACCELERATOR, "accelerator"))
    flags = cl.device_fp_config
    single = handle.single_fp_config
    exact = flags.DENORM | flags.INF_NAN | flags.ROUND_TO_NEAREST
    divides = bool(single & flags.CORRECTLY_ROUNDED_DIVIDE_SQRT)
    extensions = handle.extensions.split()
    has_f64 = "cl_khr_fp64" in extensions or bool(_or_zero(cl, handle, "double_fp_config"))
    version = handle.version.strip()
    target: str | None = ""
    if pocl_target.is_unknown(version):
        known = pocl_target.substitute(pocl_target.processor_flags())
        target = known if pocl_target.replace_name(handle.int_ptr, known) else None
    return Device(
        platform=platform.name.strip(),
        platform_version=platform.version.strip(),
        place=place,
        name=handle.name.strip(),
        kind=next((name for flag, name in by_flag if handle.type & flag), "other"),
        version=version,
        driver=handle.driver_version.strip(),
        has_f64=has_f64,
        has_exact_f32=single & exact == exact and (divides or has_f64),
        divides_f32=divides,
        has_atomics_64="cl_khr_int64_base_atomics" in extensions,
        shares_memory=bool(handle.host_unified_memory),
        is_little_endian=bool(handle.endian_little),
        address_bits=handle.address_bits,
        memory=handle.global_mem_size,
        largest_buffer=handle.max_mem_alloc_size,
        caches_builds=has_src_build_cache(handle) is True,
        target=target,
        handle=handle,
    )


def _or_zero(cl: Any, handle: Any, name: str) -> int:
    try:
        return int(getattr(handle, name))
    except cl.Error:
        return 0


def choose(found: Sequence[Device], wanted: str) -> Device | None:
    """The first of these devices that a name means; None if it means none of them."""
    if not wanted:
        return next((d for d in found if d.is_cpu), found[0] if found else None)
    if ":" not in wanted:
        return next((d for d in found if d.kind == wanted.lower()), None)
    platform, own = wanted.lower().split(":", 1)
    return next(
        (d for d in found if platform in d.platform.lower() and own in d.name.lower()), None
    )


def same(found: Sequence[Device], identity: tuple[str, int, str]) -> Device | None:
    """The device among these with the identity that another process reported; None if there is
    none.

    PoCL offers the POCL_DEVICES of the time when the process first listed devices, so the index may
    differ: then the only device of that platform and name is used.
    """
    platform, _, name = identity
    named = [d for d in found if (d.platform, d.name) == (platform, name)]
    exact = next((d for d in named if d.identity == identity), None)
    return exact or (named[0] if len(named) == 1 else None)


def find(name: str = "") -> Device:
    """The device of a name. Raises BackendError, with the list of devices."""
    found = devices()
    wanted = name or os.environ.get(ENVIRONMENT, "")
    chosen = choose(found, wanted)
    if chosen is None:
        names = [*sorted({d.kind for d in found}), *map(str, found)]
        known = ", ".join(map(repr, names))
        source = "" if name or not wanted else f" ({ENVIRONMENT})"
        raise BackendError(
            f"opencl: there is no device {wanted!r}{source}; there is {known or 'none at all'}"
        )
    if chosen.problem:
        raise BackendError(f"opencl: {chosen} cannot be used: {chosen.problem}")
    return chosen
