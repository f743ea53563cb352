# SPDX-License-Identifier: Apache-2.0
"""An engine that fails where an item of a launch accesses what another one writes."""

from __future__ import annotations

import functools

from ferryvm.backend import Artifact, Forcing
from ferryvm.engine import Engine
from ferryvm.verify import Verified
from ferryvm.wrapper import InterpreterWrapper


class _Checking(InterpreterWrapper):
    """The backend that checks that items are independent."""

    def prepare(self, program: Verified) -> Artifact:
        return self.inner.prepare_forced(program, frozenset({Forcing.INDEPENDENCE}))


@functools.cache
def checking_engine() -> Engine:
    """The reference interpreter with the check of independence; a call then raises FerryError for
    the first two items that are not independent."""
    engine = Engine("reference")
    engine.backend = _Checking(engine.backend)
    return engine
