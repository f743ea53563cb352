# SPDX-License-Identifier: Apache-2.0
"""Elements of arrays that are on a device with memory of its own, and that the host may lack.

    launch ──> results in the device's memory ──> next launch, which finds them there
                                             └──> fetch: the array of the host

The array on the host exists from the start, at the address by which programs know it; until `fetch`
its content is of no meaning. Nothing but a device that has the elements may run code that accesses
it.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ferryvm import record

if TYPE_CHECKING:
    from ferryvm.machine.state import Machine


class DeviceMemory(abc.ABC):
    """The memory of a device, which has copies of objects of programs."""

    where: str
    """The device, for people."""

    @abc.abstractmethod
    def has(self, machine: Machine, address: int) -> bool:
        """True if it has a copy of the elements at an address of a machine's, as they were at some
        time."""


memories: list[DeviceMemory] = []
"""The memory of each device that programs of this process have used."""


class DeviceElements(abc.ABC):
    """The elements of an array, on a device."""

    memory: Hashable
    """The memory that they are in: the `deferral` of runners that use it."""
    where: str
    """The device, for people."""
    owner: object = None
    """The array of the host, which is alive as long as they are."""

    @property
    @abc.abstractmethod
    def is_there(self) -> bool:
        """True if the device has them: it may have had no memory for them any more."""

    @property
    @abc.abstractmethod
    def is_on_host(self) -> bool:
        """True if the array of the host has them, too."""

    @abc.abstractmethod
    def fetch(self) -> None:
        """Copy them into the array of the host. Raises BackendError if the device has failed: then
        they are lost."""


class Repeated(Protocol):
    """A launch that has run on a device, and that may do so again."""

    @property
    def arrays(self) -> Sequence[int]:
        """As of `RepeatedRange`."""

    def run(self, elements: Sequence[DeviceElements]) -> bool:
        """As of `RepeatedRange`."""


@record.dataclass(frozen=True)
class RepeatedRange:
    """A range of items that a device has run, prepared to run again with the same arguments."""

    arrays: Sequence[int]
    """Addresses on the host of the arrays whose elements remain on the device."""
    items: int
    """The number of items."""
    run: Callable[[Machine, Sequence[Any]], bool]
    """True if all items are done, and the given `DeviceElements`, of `arrays`, are as the items have
    left them; False if nothing has happened, since something is not as it was. Native code is run in
    our floating-point environment. Raises BackendError if the device has failed with elements that
    were there alone, and the exceptions of signal handlers, in front of the range or behind it."""


@record.dataclass
class Residency:
    """Elements on a device, in front of a launch and behind it. Addresses are those of elements on
    the host."""

    arrays: frozenset[int]
    """All arrays that items may access."""
    given: Mapping[int, DeviceElements]
    """The elements that a device has of these."""
    wanted: frozenset[int]
    """Arrays of which items store all elements and read none, and which are to remain on the
    device."""
    retained: frozenset[int] = frozenset()
    """Arrays that items may read and change, and whose elements remain on the device."""
    left: dict[int, DeviceElements] = record.field(default_factory=dict)
    """The elements of both behind the launch, once all items are done; of `retained` those that
    items may have changed, or that the device did not have."""
    again: RepeatedRange | None = None
    """The range that has run, if it may run again so."""
    call: Repeated | None = None
    """The same with all that the engine has to do for it."""
    refusal: str = ""
    """The reason for which no device ran all items, if none did."""

    @property
    def memory(self) -> Hashable | None:
        """The memory of the device that has elements; None if none has any."""
        for each in self.given.values():
            return each.memory
        return None
