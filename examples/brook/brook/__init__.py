# SPDX-License-Identifier: Apache-2.0
"""Brook, a small typed language with closures, as a plugin of ferryvm.

text ──parser──> tree ──compiler──> ferryvm.build.Program ──> listing
                         │  └─ closure.py: function values, captured variables
                         └──── runtime.py: strings, in instructions
"""

from __future__ import annotations

from ferryvm.front_end import FrontEnd
from ferryvm.hooks import LanguageEntry, hookimpl


def _front_end() -> FrontEnd:
    from brook.session import Session, parse_listing  # when a program is in the language

    return FrontEnd(parse_listing, session=Session)


@hookimpl
def ferryvm_languages() -> list[LanguageEntry]:
    """Brook, for files that end with .brook."""
    return [LanguageEntry("brook", (".brook",), _front_end, "a small language with closures")]
