# SPDX-License-Identifier: Apache-2.0
"""Directives for GCC in a text: options that the text needs whatever the command has.

Other compilers skip them, and GCC itself if it does not optimise.
"""

from __future__ import annotations


def options(*names: str) -> str:
    """The directive that switches options on for what follows it."""
    listed = ", ".join(f'"{name}"' for name in names)
    return (
        "#if defined(__OPTIMIZE__) && defined(__GNUC__) && !defined(__clang__)\n"
        f"#pragma GCC optimize({listed})\n"
        "#endif\n"
    )
