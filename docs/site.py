# SPDX-License-Identifier: Apache-2.0
"""The part of the site that is derived: navigation, linked files, pages of the API reference.

A hook of MkDocs (mkdocs.yml), no module of the package. Three things have one source each:

    docs/README.md   ── lists of links ──> navigation
    docs/api.md      ── tables of names ─> a page `reference/MODULE.md` for each public module
    links of a page that leave docs/ ────> copies of those files below `source/`

A link that leads nowhere, or a public name without a definition, fails the build.
"""

from __future__ import annotations

import importlib
import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

DOCS = Path(__file__).parent
ROOT = DOCS.parent
_LINK = re.compile(
    r"^```.*?^```$|(?P<before>\]\()(?P<link>[^)\s#:]+)(?=[)#])", re.MULTILINE | re.DOTALL
)
"""A fenced block, which has no links, or a link to a file, up to its anchor."""


def public_names(text: str) -> dict[str, list[str]]:
    """Names by module, of every table in docs/api.md, in its order."""
    rows = re.findall(r"^\| `(ferryvm[\w.]*)` \| (.*) \|$", text, re.MULTILINE)
    return {module: re.findall(r"`(\w+)`", names) for module, names in rows}


def _homes(modules: dict[str, list[str]]) -> dict[tuple[str, str], str]:
    """The module on whose page each (module, name) is documented: the one nearest to its
    definition."""
    homes = {}
    for module, names in modules.items():
        for name in names:
            value = getattr(importlib.import_module(module), name)
            bearers = [
                other
                for other, others in modules.items()
                if name in others and getattr(importlib.import_module(other), name) is value
            ]
            homes[module, name] = max(bearers, key=lambda bearer: bearer.count("."))
    return homes


def _identifier(module: str, name: str) -> str:
    """The path under which the reference finds a definition: where a class or function stands."""
    value = getattr(importlib.import_module(module), name)
    defined = getattr(value, "__module__", "")
    is_definition = callable(value) and getattr(value, "__qualname__", "") == name
    return f"{defined if is_definition and defined.startswith('ferryvm') else module}.{name}"


def _reference(module: str, names: list[str], homes: dict[tuple[str, str], str]) -> str:
    """The page of one module."""
    lines = [
        f"# {module}",
        "",
        f"::: {module}",
        "    options: {members: false, show_root_heading: false, show_root_toc_entry: false}",
        "",
    ]
    for name in names:
        home = homes[module, name]
        if home == module:
            lines += [f"::: {_identifier(module, name)}", ""]
        else:
            lines += [
                f"## {name}",
                "",
                f"See [{home}.{name}]({home}.md#{_identifier(home, name)}).",
                "",
            ]
    return "\n".join(lines)


def _site_path(path: Path) -> str:
    """Where a file of the repository is in the site."""
    if path.is_relative_to(DOCS):
        return path.relative_to(DOCS).as_posix()
    return f"source/{path.relative_to(ROOT).as_posix()}"


def _targets(path: Path) -> list[Path]:
    """Files of the repository that a page links to; a folder stands for its README."""
    text = path.read_text(encoding="utf-8")
    return [_target(path, match["link"]) for match in _LINK.finditer(text) if match["link"]]


def _target(page: Path, link: str) -> Path:
    target = (page.parent / link).resolve()
    readme = target / "README.md"
    return readme if readme.is_file() else target


def _navigation() -> list[dict[str, object]]:
    """The lists of docs/README.md."""
    navigation: list[dict[str, object]] = [{"Documentation": "README.md"}]
    text = (DOCS / "README.md").read_text(encoding="utf-8")
    for section in re.split(r"^\*\*", text, flags=re.MULTILINE)[1:]:
        title, _, body = section.partition("**")
        links = re.findall(r"^- \[([^\]]*)\]\(([^)#]*)", body, re.MULTILINE)
        navigation.append(
            {
                title: [
                    {" ".join(t.split()): _site_path((DOCS / link).resolve())} for t, link in links
                ]
            }
        )
    return navigation


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the reference and the files outside of docs/ that pages link to."""
    from mkdocs.structure.files import File

    modules = public_names((DOCS / "api.md").read_text(encoding="utf-8"))
    homes = _homes(modules)
    for module, names in modules.items():
        page = _reference(module, names, homes)
        files.append(File.generated(config, f"reference/{module}.md", content=page))
    waiting, seen = sorted(DOCS.glob("**/*.md")), set[Path]()
    while waiting:
        page_path = waiting.pop()
        for target in _targets(page_path):
            if target in seen or target.is_relative_to(DOCS) or not target.is_file():
                continue
            seen.add(target)
            source = str(target)
            files.append(File.generated(config, _site_path(target), abs_src_path=source))
            if target.suffix == ".md":
                waiting.append(target)
    config.nav = [
        *_navigation(),
        {"API reference": [{module: f"reference/{module}.md"} for module in modules]},
    ]
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The text of a page with its links turned to where the files are in the site."""
    if page.file.src_uri.startswith("reference/"):
        return markdown
    path = Path(str(page.file.abs_src_path)).resolve()
    folder = posixpath.dirname(page.file.src_uri) or "."

    def turned(match: re.Match[str]) -> str:
        if not match["link"]:
            return match[0]
        target = _site_path(_target(path, match["link"]))
        return f"{match['before']}{posixpath.relpath(target, folder)}"

    return _LINK.sub(turned, markdown)
