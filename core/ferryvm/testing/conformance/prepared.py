# SPDX-License-Identifier: Apache-2.0
"""Artifacts that scripts of one program share, so that its code is built once.

Items of launches run in order there: a script knows no record of items that did not.
"""

from __future__ import annotations

from ferryvm.backend import Artifact, Interpreter
from ferryvm.verify import Verified


class Prepared:
    """The most recent artifact. Programs are distinguished by identity, not by content."""

    def __init__(self) -> None:
        self._backend: Interpreter | None = None
        self._program: Verified | None = None
        self._artifact: Artifact | None = None

    def get(self, backend: Interpreter, program: Verified) -> Artifact | None:
        """The result of a backend's `prepare` for a program. Raises its exceptions."""
        if self._program is not program or self._backend is not backend:
            self.forget()
            self._artifact = backend.prepare(program)
            launches = getattr(self._artifact, "launches", None)
            if launches is not None:
                launches.disable()
            self._backend, self._program = backend, program
        return self._artifact

    def forget(self) -> None:
        """Prepare the next artifact anew."""
        self._backend = self._program = self._artifact = None
