# SPDX-License-Identifier: Apache-2.0
"""Code objects of CPython, compared with the definitions in a source.

A source is read when a function is compiled, and may be another one than the function was made
from: several lambdas stand on a line, and a file may be edited after it was imported.
"""

from __future__ import annotations
import __future__

import ast
import dis
import types
from collections.abc import Iterator

_FUTURE = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
"""The flags of code that imports from `__future__` have set."""

_PADDING = frozenset(
    {"CACHE", "COPY_FREE_VARS", "EXTENDED_ARG", "NOP", "PRECALL", "PUSH_NULL", "RESUME"}
)
"""Instructions that have no meaning by themselves."""


def has_code(node: ast.Lambda, code: types.CodeType) -> bool:
    """True if CPython makes this code of a lambda: another one may have the same line and
    parameters."""
    return _is_alike(_made(node, code), code)


def is_made_from(node: ast.FunctionDef | ast.Lambda, function: types.FunctionType) -> bool:
    """True if a definition is the one that a function was made from, but for texts in it: those of
    several lines lose indentation where a definition is taken out of its module."""
    code = function.__code__
    is_private = any(name.startswith("_") and "__" in name for name in _all_names(code))
    is_rewritten = "@pytest_ar" in function.__globals__  # pytest rewrites asserts
    return is_private or is_rewritten or _is_alike(_made(node, code), code, has_texts=False)


def _all_names(code: types.CodeType) -> Iterator[str]:
    """The names in code and in that of functions in it; those of private attributes have the class
    in front."""
    yield from (*code.co_names, *code.co_varnames, *code.co_freevars)
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield from _all_names(each)


def _made(node: ast.FunctionDef | ast.Lambda, code: types.CodeType) -> types.CodeType | None:
    """The code that CPython makes of a definition, with the free variables of other code."""
    names = [ast.arg(name) for name in code.co_freevars]
    given = ast.arguments([], names, None, [], [], None, [])
    body: list[ast.stmt] = [ast.Expr(node) if isinstance(node, ast.Lambda) else node]
    if isinstance(node, ast.FunctionDef) and node.name not in code.co_freevars:
        body.insert(0, ast.Global([node.name]))  # in it, its name is no variable of `outer`
    outer = ast.FunctionDef("%outer", given, body, [])  # a name that no definition has
    tree = ast.fix_missing_locations(ast.Module([ast.copy_location(outer, node)], []))
    flags = code.co_flags & _FUTURE
    waiting: list[types.CodeType] = [
        compile(tree, code.co_filename, "exec", flags=flags, dont_inherit=True)
    ]
    while waiting:
        for each in waiting.pop().co_consts:
            if isinstance(each, types.CodeType):
                if each.co_name == code.co_name:
                    return each
                waiting.append(each)
    return None


def _is_alike(one: types.CodeType | None, other: types.CodeType, has_texts: bool = True) -> bool:
    """True if two codes have the same results. Names that a module imports have other instructions
    than others, so these are compared by their meaning where they differ."""
    if one is None:
        return False
    if _shape(one, has_texts) == _shape(other, has_texts):
        return True
    return _meaning(one, has_texts) == _meaning(other, has_texts)


def _shape(code: types.CodeType, has_texts: bool) -> tuple[object, ...]:
    """The parts of code that determine its results."""
    constants = [
        _shape(each, has_texts) if isinstance(each, types.CodeType) else _text(each)
        for each in code.co_consts
        if has_texts or not isinstance(each, str)
    ]
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    return code.co_code, names, constants


def _meaning(code: types.CodeType, has_texts: bool) -> list[object]:
    """The instructions of code with their operands, without the places of jumps."""
    found: list[object] = [code.co_varnames, code.co_freevars, code.co_cellvars]
    for each in dis.get_instructions(code):
        value = each.argval
        if each.opname in _PADDING:
            continue
        if isinstance(value, types.CodeType):
            found.append(_meaning(value, has_texts))
        elif each.opcode in dis.hasjabs or each.opcode in dis.hasjrel:
            found.append(each.opname)
        else:
            operation = "LOAD_ATTR" if each.opname == "LOAD_METHOD" else each.opname
            is_text = isinstance(value, str) and each.opname in ("LOAD_CONST", "RETURN_CONST")
            found.append((operation, "" if is_text and not has_texts else _text(value)))
    return found


def _text(value: object) -> str:
    """The text of a constant, by which 1, 1.0 and True are three."""
    return str(sorted(map(repr, value))) if isinstance(value, frozenset) else repr(value)
