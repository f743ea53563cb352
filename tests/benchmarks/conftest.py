# SPDX-License-Identifier: Apache-2.0
"""`benchmarks` is not installed: it runs from the root of the repository."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
