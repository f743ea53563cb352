# SPDX-License-Identifier: Apache-2.0
"""docs/api.md lists what is public: the code agrees, and every public name is documented."""

from __future__ import annotations

import ast
import importlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path

from ..tier import together
from .source import nodes, parsed

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / "core"

_SPEC = importlib.util.spec_from_file_location("site_hook", ROOT / "docs" / "site.py")
assert _SPEC
assert _SPEC.loader
SITE = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(SITE)

PUBLIC: dict[str, list[str]] = SITE.public_names((ROOT / "docs" / "api.md").read_text("utf-8"))
NAMES = [(module, name) for module, names in PUBLIC.items() for name in names]

Function = ast.FunctionDef | ast.AsyncFunctionDef


def _path(module: str) -> Path:
    folder = CORE.joinpath(*module.split("."))
    return folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")


def _statements(module: str) -> Iterator[tuple[ast.stmt, ast.stmt | None]]:
    """The module's top-level statements and those under an `if`, each with the next one."""
    bodies = [parsed(_path(module)).body]
    for body in bodies:
        yield from zip(body, [*body[1:], None], strict=True)
        bodies += [node.body for node in body if isinstance(node, ast.If)]


def _string(node: ast.stmt | None) -> str | None:
    match node:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return text
    return None


def _is_overload(node: ast.FunctionDef) -> bool:
    return any(isinstance(one, ast.Name) and one.id == "overload" for one in node.decorator_list)


def _definition(module: str, name: str) -> tuple[ast.stmt, str | None]:
    """The statement that defines a name, and its docstring; imports are followed."""
    for node, after in _statements(module):
        match node:
            case ast.FunctionDef(name=found) if found == name and _is_overload(node):
                continue  # the implementation follows, with the docstring
            case ast.ClassDef(name=found) | ast.FunctionDef(name=found) if found == name:
                return node, ast.get_docstring(node)
            case ast.Assign(targets=[ast.Name(id=found)]) if found == name:
                return node, _string(after)
            case ast.AnnAssign(target=ast.Name(id=found)) if found == name:
                return node, _string(after)
            case ast.ImportFrom(module=str(source), names=aliases):
                for alias in aliases:
                    if (alias.asname or alias.name) == name:
                        return _definition(source, alias.name)
    raise AssertionError(f"{module} has no {name}")


def _functions(module: str, name: str) -> Iterator[tuple[str, Function, str]]:
    """A public function, or the public methods and the constructor of a public class; each with
    the text that documents it."""
    node, docstring = _definition(module, name)
    match node:
        case ast.FunctionDef():
            yield f"{module}.{name}", node, docstring or ""
        case ast.ClassDef(body=body):
            for method in body:
                if not isinstance(method, ast.FunctionDef) or _is_setter(method):
                    continue
                own = ast.get_docstring(method) or ""
                if method.name == "__init__":
                    yield f"{module}.{name}()", method, f"{docstring} {own}"
                elif not method.name.startswith("_"):
                    yield f"{module}.{name}.{method.name}", method, own


def _is_setter(method: ast.FunctionDef) -> bool:
    """True if a property's getter has the docstring."""
    return any(ast.unparse(each).endswith(".setter") for each in method.decorator_list)


def _raises(function: Function) -> bool:
    """True if the function itself raises an exception on purpose, which its caller may see."""
    nested = {
        inner
        for node in ast.walk(function)
        if node is not function and isinstance(node, Function | ast.Lambda)
        for inner in ast.walk(node)
    }
    caught = {
        inner for node in ast.walk(function) if isinstance(node, ast.Try) for inner in node.body
    }
    return any(
        isinstance(node, ast.Raise)
        and isinstance(node.exc, ast.Call)
        and ast.unparse(node.exc.func) not in ("NotImplementedError", "AttributeError")
        and node not in nested | caught
        for node in ast.walk(function)
    )


def test_a_module_is_listed_if_and_only_if_it_says_what_is_public() -> None:
    declaring = {
        ".".join(path.relative_to(CORE).with_suffix("").parts).removesuffix(".__init__")
        for path in CORE.rglob("*.py")
        if any(line.startswith("__all__ = ") for line in path.read_text("utf-8").splitlines())
    }
    assert declaring == set(PUBLIC)


@together("module", PUBLIC)
def test_the_page_lists_the_public_names_of_the_module(module: str) -> None:
    assert sorted(PUBLIC[module]) == sorted(importlib.import_module(module).__all__)


def test_every_public_name_exists_and_has_a_docstring() -> None:
    assert not [f"{module}.{name}" for module, name in NAMES if not _definition(module, name)[1]]


def test_every_method_of_a_public_class_has_a_docstring() -> None:
    missing = [
        label
        for module, name in NAMES
        for label, _, text in _functions(module, name)
        if not text.strip()
    ]
    assert not missing


def test_a_public_function_that_raises_says_what() -> None:
    silent = [
        label
        for module, name in NAMES
        for label, function, text in _functions(module, name)
        if _raises(function) and "raise" not in text.lower() and "Error" not in text
    ]
    assert not silent


def test_plugins_import_public_names_only() -> None:
    found = set()
    for path in (ROOT / "plugins").glob("*/src/**/*.py"):
        for node in nodes(path):
            if not (isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ferryvm")):
                continue
            module = str(node.module)
            if module.partition(".")[0] != "ferryvm":
                continue
            for alias in node.names:
                if f"{module}.{alias.name}" not in PUBLIC and alias.name not in PUBLIC.get(
                    module, ()
                ):
                    found.add(f"{path.name}: {module}.{alias.name}")
    assert not found
