# SPDX-License-Identifier: Apache-2.0
"""The processor's architecture, as the system names it. `platform`, which does the same on more
systems, takes two milliseconds to load."""

from __future__ import annotations

import os
from typing import Final

NAME: Final = os.uname().machine.lower()
"""Such as `x86_64` or `aarch64`; `amd64` and `arm64` on some systems."""

IS_X86: Final = NAME in ("x86_64", "amd64")
"""True for processors with x86-64's registers and instructions."""
