# SPDX-License-Identifier: Apache-2.0
"""Requirements of programs: code that they wait for, or without which they end, by their policy.

Compilation never stops a program by itself. A program waits if its policy says so (`background =
false`), and ends if the policy requires code that is not available (`required = true`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from ferryvm.backend import Artifact, BackendError, Forcing
from ferryvm.engine.journal import Journal
from ferryvm.engine.site import Site
from ferryvm.engine.transition import SiteState
from ferryvm.machine.control import ControlBlock, Status
from ferryvm.machine.state import Machine
from ferryvm.policy import Policy

_LAST = frozenset([Status.HALT, Status.TRAP, Status.FUEL])
"""Statuses after which a program may not come back."""


class Requirements:
    """The requirements of one prepared program, and its machines that depend on them."""

    def __init__(
        self, policy: Policy, journal: Journal, forcing: frozenset[Forcing], strict: bool
    ) -> None:
        """`strict`: for tests, a compiler's failure ends the program, whatever the policy says."""
        choices = [choice for rule in policy.rules for choice in rule.chain]
        required = [choice for choice in choices if choice.options.required]
        first = [rule.chain[0] for rule in policy.rules if rule.chain]
        self._journal = journal
        self.may_wait = bool(forcing) or not all(one.options.background for one in first)
        """True if programs wait for code."""
        self.is_strict = strict or bool(required)
        """True if the policy requires some code."""
        self.may_stop = any(one.options.background for one in (choices if strict else required))
        """True if a program runs while that is being decided."""
        self.waited = 0.0
        """Seconds that programs have waited."""
        self.awaited: dict[tuple[int, bool], Site] = {}
        """Sites for whose code programs wait, also in the next run after an interrupted one."""
        self._entered: list[ControlBlock] = []
        """Running machines that may have to be stopped."""
        self.refused: BackendError | None = None
        """The requirement of the policy that could not be met; then nothing is run any more."""
        self._lock = threading.Lock()

    @property
    def is_free(self) -> bool:
        """True if a program may continue without a check of the requirements."""
        return not self.awaited and self.refused is None

    def expect(self, site: Site) -> None:
        """Make programs wait for the job of a site, if they wait for any."""
        if self.may_wait:
            self.awaited[site.key] = site

    def wait(self, control: ControlBlock) -> bool:
        """Wait for the expected code; False if the wait was interrupted.

        Raises the error of code that the policy requires and that is not available.
        """
        while self.awaited:  # more may be expected meanwhile
            key, site = next(iter(self.awaited.items()))
            job = site.job
            assert job is not None
            began = self._journal.now()
            has_ended = job.wait(control)
            self.waited += self._journal.now() - began
            if not has_ended and self.refused is None:
                return False
            if site.job is job:  # otherwise it is queued again already
                self.awaited.pop(key, None)
        if self.refused is not None:
            raise type(self.refused)(str(self.refused))
        return True

    def enter(self, artifact: Artifact, machine: Machine, counting: bool) -> Status:
        """Enter an artifact if `may_stop` is set: it is interrupted if the program may not
        continue."""
        with self._lock:
            self._entered.append(machine.control)
        try:
            return artifact.enter(machine, counting)
        finally:
            with self._lock:
                self._entered.remove(machine.control)

    def settle(self, status: Status, control: ControlBlock, sites: Iterable[Site]) -> None:
        """Wait for required code that is still being compiled for a program that has ended, so that
        the outcome does not depend on timing. Raises as `wait`."""
        if status not in _LAST:
            return
        for site in sites:
            if site.state is SiteState.RECOMPILING:
                continue  # its code is installed
            if site.job is not None and not site.job.wait(control, to_the_end=True):
                return
        if self.refused is not None:
            raise type(self.refused)(str(self.refused))

    def refuse(self, error: BackendError) -> None:
        """Run nothing any more: code that the policy requires is not available."""
        with self._lock:
            self.refused = error
            for control in self._entered:
                control.interrupt = 1
