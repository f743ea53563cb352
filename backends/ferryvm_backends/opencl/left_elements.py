# SPDX-License-Identifier: Apache-2.0
"""Results of a launch that remain on a device: a buffer of their own, until the host wants them.

    copy in the arena of a machine ──> buffer ──> copy in the arena of another machine
                                         └──> array of the host

Each machine has one buffer for all its arrays, since a kernel can access its arguments only. So
elements are copied on the device, which takes a hundredth of what a copy through the bus does.
"""

from __future__ import annotations

import pyopencl as cl

from ferryvm.backend import BackendError
from ferryvm.failure import one_line
from ferryvm.float_environment import ours
from ferryvm.residency import DeviceElements
from ferryvm_backends.opencl.build import Session
from ferryvm_backends.opencl.host_memory import Bytes
from ferryvm_backends.opencl.kernel import BufferOffset
from ferryvm_backends.opencl.pool import Area


class LeftElements(DeviceElements):
    """The elements of one array."""

    def __init__(
        self, session: Session, place: BufferOffset, host: Bytes, *, is_on_host: bool = False
    ) -> None:
        """`place`: of the copy that is taken; `host`: the bytes of the array. Raises BackendError,
        cl.Error."""
        self._session, self._host, self._is_on_host = session, host, is_on_host
        self.where = str(session.device)
        size = len(host)
        self._area: Area | None = session.pool.take(size)
        cl.enqueue_copy(
            session.queue, self._area.buffer, place.buffer, byte_count=size, src_offset=place.offset
        )

    @property
    def is_there(self) -> bool:
        return self._area is not None

    @property
    def is_on_host(self) -> bool:
        return self._is_on_host

    def copy_to(self, place: BufferOffset) -> None:
        """Copy them to another place on the device. Raises BackendError, cl.Error."""
        if self._area is None:
            raise BackendError(f"opencl: {self.where} has no memory for results that were there")
        cl.enqueue_copy(
            self._session.queue,
            place.buffer,
            self._area.buffer,
            byte_count=len(self._host),
            dst_offset=place.offset,
        )

    def fetch(self) -> None:
        area = self._area
        if self._is_on_host or area is None:
            return
        try:
            with ours():
                cl.enqueue_copy(self._session.queue, self._host, area.buffer)
        except cl.Error as error:
            what = f"{self.where} failed with results that were there alone"
            raise BackendError(f"opencl: {what}: {one_line(str(error))}") from None
        self._is_on_host = True

    def give_up(self) -> None:
        """Let only the host have them. Raises BackendError."""
        self.fetch()
        area, self._area = self._area, None
        if area is not None:
            area.release()
