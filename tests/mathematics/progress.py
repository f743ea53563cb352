# SPDX-License-Identifier: Apache-2.0
"""Finished parts of a long comparison, so that one that was stopped goes on."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any


class Progress:
    """Finished parts by their keys, in a file that belongs to one text: what was compared."""

    def __init__(self, name: str, text: str, fresh: bool) -> None:
        """`fresh`: forget the parts that are finished."""
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        folder = Path(os.environ.get("XDG_STATE_HOME", tempfile.gettempdir())) / "mathematics"
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{name}-{digest}.jsonl"
        if fresh:
            self.path.unlink(missing_ok=True)
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        self.parts: dict[Any, Any] = {entry["first"]: entry for entry in map(json.loads, lines)}

    def add(self, entry: dict[str, Any]) -> None:
        """Note a finished part, whose key is its `first`."""
        self.parts[entry["first"]] = entry
        with self.path.open("a") as file:
            file.write(json.dumps(entry) + "\n")
