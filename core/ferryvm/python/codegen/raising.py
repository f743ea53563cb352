# SPDX-License-Identifier: Apache-2.0
"""Code that raises and catches exceptions.

    raise ──> a clause of compiled code that only tests the type   ──> throw, with site and type
          └─> a clause that uses the exception, `finally`, or none ──> CPython raises it, and goes on

So what a clause gets as a value is CPython's own exception, with message, cause, context and lines.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ferryvm.python.control_flow.graph import Handler, Known, Raise, RaiseAgain
from ferryvm.python.fault import NotCompilableError
from ferryvm.python.value.kind import Raised

if TYPE_CHECKING:
    from ferryvm.python.codegen.code import Code


def raise_(b: Code, end: Raise) -> None:
    """Raise an exception."""
    arguments = getattr(end.exception, "args", ())
    is_plain = not arguments or _is_text(arguments)
    message = arguments[0].value if arguments and is_plain else None
    # CPython makes an exception whose arguments are computed.
    reason = message if is_plain else "an exception with computed arguments"
    b.throw(end.node, end.type, reason, is_limit=not is_plain)


def raise_again(b: Code, end: RaiseAgain) -> None:
    """Raise the exception in a variable."""
    kind = b.env[end.name]
    if not isinstance(kind, Raised):
        raise NotCompilableError(end.node, f"cannot raise {kind}")
    for local in b.locals(end.name, kind)[:2]:
        b.f.local_get(local)
    b.f.throw(b.error)


def set_caught(b: Code, node: ast.AST, handler: Handler, is_call: bool) -> None:
    """Pop site and type of an exception that code at a node has raised, for a handler. `is_call`:
    True if that may be in a function that it calls."""
    if is_call:
        b.push_site(node)
    else:
        b.f.i64_const(-1)
    for local in reversed(b.locals(handler.name, Raised())):
        b.f.local_set(local)


def _is_text(arguments: Sequence[ast.expr]) -> bool:
    """True for one text that is written out."""
    first = arguments[0]
    is_known = len(arguments) == 1 and isinstance(first, ast.Constant | Known)
    return is_known and isinstance(getattr(first, "value", None), str)
