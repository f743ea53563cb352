# SPDX-License-Identifier: Apache-2.0
"""The folder of a campaign's findings: each is saved at once, under a name that is free.

1-bytecode-17.disagreement     backends that disagree; `ferry replay` shows it again
1-image-4.fvm, 1-image-4.txt   what ended the process, or raised: the file, and what happened
"""

from __future__ import annotations

import dataclasses
import itertools
import tempfile
from collections.abc import Callable
from pathlib import Path

from ferryvm.atomic_file import replace_file
from ferryvm.engine.saved import STATE
from ferryvm.errors import FerryError
from ferryvm.testing.differential import Comparison, Differ
from ferryvm.testing.fuzz.outcome import Finding
from ferryvm.testing.fuzz.plan import CampaignPlan
from ferryvm.testing.generate import OF_PYTHON
from ferryvm.testing.schedule import Schedule
from ferryvm.testing.trial import failing
from ferryvm.verify import Verified


class StoreError(FerryError):
    """A finding cannot be saved: continuing would lose it."""


class Store:
    """Saves findings, if the plan says where."""

    def __init__(self, plan: CampaignPlan) -> None:
        self.plan = plan
        self.folder = None if plan.save is None else Path(plan.save)

    def probe(self) -> None:
        """Make the folder. Raises StoreError if nothing can be saved there."""
        if self.folder is None:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=self.folder).close()
        except OSError as error:
            message = f"{self.folder}: findings cannot be saved there: {error.strerror}"
            raise StoreError(message) from None

    def record(
        self,
        finding: Finding,
        differ: Differ,
        program: Verified,
        comparison: Comparison,
        schedule: Schedule,
        seed: int,
        progress: Callable[[], object],
        seconds: float,
    ) -> Finding:
        """The finding with the place where backends part, saved as a disagreement.

        `seconds`: how long bisecting may take; `progress` is called meanwhile.
        """
        from ferryvm.testing import disagreement  # half of the start of a worker that finds nothing

        origin = self.plan.command(finding.number)
        one = disagreement.record(
            differ, program, comparison, schedule, seed, origin, progress, seconds
        )
        if one.parting is not None:
            finding = dataclasses.replace(finding, mnemonic=one.parting.mnemonic)
        elif failing(comparison.difference.right if comparison.difference else "") is None:
            text = f"{finding.text} (not bisected: {one.unbisected})"
            finding = dataclasses.replace(finding, text=text)
        if self.folder is None:
            return finding
        stem = self._free(finding)
        path = stem.with_suffix(disagreement.SUFFIX)
        try:
            if finding.detail:
                replace_file(stem.with_suffix(".txt"), self._text(finding))
            disagreement.save(one, path)
        except OSError as error:
            raise StoreError(f"{stem}: cannot be written: {error.strerror}") from None
        except disagreement.DisagreementError as error:
            raise StoreError(str(error)) from None
        return dataclasses.replace(finding, path=str(path))

    def save(self, finding: Finding, content: bytes | None) -> Finding:
        """The finding, saved as a text and the file that was tried, if one was made."""
        if self.folder is None:
            return finding
        stem = self._free(finding)
        shown = text = stem.with_suffix(".txt")
        try:
            if content is not None:
                suffix = ".ferry" if content.startswith(STATE.magic) else ".fvm"
                is_python = finding.kind in OF_PYTHON
                shown = stem.with_suffix(".py" if is_python else suffix)
                replace_file(shown, content)
            replace_file(text, self._text(finding))
        except OSError as error:
            raise StoreError(f"{stem}: cannot be written: {error.strerror}") from None
        return dataclasses.replace(finding, path=str(shown))

    def _text(self, finding: Finding) -> bytes:
        lines = [f"{finding.outcome.value}: {finding.text}"]
        lines += [f"{self.plan.command(finding.number)}", finding.detail]
        return "\n".join(lines).encode(errors="backslashreplace")

    def _free(self, finding: Finding) -> Path:
        """A path without suffix that no file has, whatever its suffix."""
        assert self.folder is not None
        name = f"{self.plan.seed}-{finding.kind.value}-{finding.number}"
        taken = {path.name.split(".")[0] for path in self.folder.glob(f"{name}*")}
        for again in itertools.count(2):
            if name not in taken:
                break
            name = f"{self.plan.seed}-{finding.kind.value}-{finding.number}-{again}"
        return self.folder / name
