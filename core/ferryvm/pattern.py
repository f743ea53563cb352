# SPDX-License-Identifier: Apache-2.0
"""Regular expressions that are compiled at their first use: one takes a tenth of a millisecond, and
a small run uses few of those that its modules have."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    lazy = re.compile  # a `re.Pattern` to type checkers
else:

    class _Lazy:
        """A pattern with the methods of `re.Pattern`, which are looked up in a compiled one."""

        def __init__(self, text: str | bytes, flags: int) -> None:
            self._source = text, flags

        def __getattr__(self, name: str) -> Any:
            compiled = re.compile(*self._source)
            for method in ("match", "fullmatch", "finditer"):
                setattr(self, method, getattr(compiled, method))
            return getattr(compiled, name)

    def lazy(pattern, flags=0):
        """The pattern, as of `re.compile`; a text that is none raises `re.error` at its first
        use."""
        return _Lazy(pattern, flags)
