# SPDX-License-Identifier: Apache-2.0
"""Results of a launch that remain on a device, until the host wants them.

    copy in the arena of a machine ──> area of their own ──> copy in the arena of another machine
          └── is their home <── launches that run again       └──> array of the host

Each machine has one buffer for all its arrays, since a kernel can access its arguments only. So
elements are copied on the device, which takes a hundredth of what a copy through the bus does. A
launch that runs again as before changes them where its machine has them: that copy is their *home*
from then on, and the area has old ones, until the copy is needed for others.
"""

from __future__ import annotations

import ctypes
from typing import Protocol

import pyopencl as cl

from ferryvm.backend import BackendError
from ferryvm.failure import one_line
from ferryvm.float_environment import ours
from ferryvm.residency import DeviceElements
from ferryvm_backends.opencl.build import Session
from ferryvm_backends.opencl.host_memory import Bytes
from ferryvm_backends.opencl.kernel import BufferOffset
from ferryvm_backends.opencl.pool import Area


class Home(Protocol):
    """The copy of an array in the arena of a machine: `ferryvm_backends.opencl.array_copy`."""

    place: BufferOffset

    def has_taken(self, elements: LeftElements) -> None:
        """Note that the device has these elements there."""


class LeftElements(DeviceElements):
    """The elements of one array."""

    def __init__(
        self, session: Session, place: BufferOffset, host: Bytes, *, is_on_host: bool = False
    ) -> None:
        """`place`: of the copy that is taken; `host`: the bytes of the array. Raises BackendError,
        cl.Error."""
        self._session, self._host, self._is_on_host = session, host, is_on_host
        self.where = str(session.device)
        self.version = 0
        """Changes with the elements."""
        self._home: Home | None = None
        """The copy of a machine that has them; None: the area does."""
        self._next: tuple[Home, ctypes.c_uint64] | None = None
        """Their home once the word is not zero: a launch is under way, or has just ended."""
        self._is_lost = False
        self._area: Area | None = None
        self._save(place)

    def _save(self, place: BufferOffset) -> None:
        """Copy elements to the area. Raises BackendError, cl.Error."""
        size = len(self._host)
        if self._area is None:
            self._area = self._session.pool.take(size)
        cl.enqueue_copy(
            self._session.queue,
            self._area.buffer,
            place.buffer,
            byte_count=size,
            src_offset=place.offset,
        )

    @property
    def home(self) -> Home | None:
        """The copy of a machine that has them; None if they have an area of their own."""
        following = self._next
        if following is not None:
            home, is_done = following
            if is_done.value:
                self._home = home
            self._next = None
        return self._home

    def is_at(self, copy: Home) -> bool:
        """True if they have their home in a copy, and no launch is under way."""
        return self._home is copy and self._next is None

    @property
    def is_there(self) -> bool:
        return self.home is not None or self._area is not None

    @property
    def is_on_host(self) -> bool:
        return self._is_on_host

    @property
    def _place(self) -> BufferOffset | None:
        """Their place on the device; None if they are not there."""
        home = self.home
        if home is not None:
            return home.place
        return None if self._area is None else BufferOffset(self._area.buffer)

    def copy_to(self, place: BufferOffset) -> None:
        """Copy them to another place on the device. Raises BackendError, cl.Error."""
        found = self._place
        if found is None:
            raise BackendError(f"opencl: {self.where} has no memory for results that were there")
        cl.enqueue_copy(
            self._session.queue,
            place.buffer,
            found.buffer,
            byte_count=len(self._host),
            src_offset=found.offset,
            dst_offset=place.offset,
        )

    # --- a home -------------------------------------------------------------------------------

    def change_in(self, copy: Home) -> None:
        """Let a copy that has them be their home: a kernel that cannot fail changes them there."""
        self._is_on_host = False
        self.version += 1  # other copies have old ones
        self._home = copy

    def change_once(self, copy: Home, is_done: ctypes.c_uint64) -> None:
        """Let a copy that has them be their home as soon as a kernel has changed them there, which
        sets a word. Until then the area has them. Raises BackendError, cl.Error."""
        self.leave_home()
        self._is_on_host = False
        self.version += 1
        self._next = copy, is_done

    def leave_home(self) -> None:
        """Copy them to an area of their own. Raises BackendError, cl.Error."""
        home = self.home
        if home is None:
            return
        if self._area is None:
            self._area = self._session.pool.take(len(self._host))
            if self.home is None:  # they were given up for that
                self.give_up()
                return
        self._save(home.place)
        home.has_taken(self)
        self._home = None

    # --- to the host --------------------------------------------------------------------------

    def fetch(self) -> None:
        what = f"{self.where} failed with results that were there alone"
        if self._is_lost:
            raise BackendError(f"opencl: {what}")
        place = self._place
        if self._is_on_host or place is None:
            return
        try:
            with ours():
                cl.enqueue_copy(
                    self._session.queue, self._host, place.buffer, src_offset=place.offset
                )
        except cl.Error as error:
            raise BackendError(f"opencl: {what}: {one_line(str(error))}") from None
        self._is_on_host = True

    def give_up(self) -> None:
        """Let only the host have them. Raises BackendError."""
        self.fetch()
        self._home, area, self._area = None, self._area, None
        if area is not None:
            area.release()

    def lose(self) -> None:
        """Nobody has them any more: each further use raises BackendError."""
        self._is_lost, self._is_on_host = True, False
        self._home = self._next = self._area = None
