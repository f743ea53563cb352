# SPDX-License-Identifier: Apache-2.0
"""Pages: single HTML files without dependencies on the network or other files.

A page's package has a folder `template` with `page.html`, `style.css` and `script.js`. Its template
escapes every text, its script is the only one that the page allows (by its hash, in a content
security policy that the template states), and the same policy should forbid loading anything.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path

import jinja2

from ferryvm.atomic_file import replace_file
from ferryvm.errors import FerryError


def template(
    package: str, filters: Mapping[str, Callable[..., object]] | None = None
) -> jinja2.Template:
    """The template of a package, with `script`, `style` and `digest`: the texts of these files, and
    the hash by which the policy allows the script."""

    def file(name: str) -> str:
        return (resources.files(package) / "template" / name).read_text(encoding="utf-8")

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(file),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    environment.filters.update(filters or {})
    script = file("script.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment.globals.update(script=script, style=file("style.css"), digest=digest)
    return environment.get_template("page.html")


def write(path: Path, content: str) -> None:
    """Write a page to a file: readers see the old file or the new one.

    Raises FerryError if it cannot be written.
    """
    try:
        replace_file(path, content.encode())
    except OSError as error:
        raise FerryError(f"{path}: cannot be written: {error.strerror}") from None


def shown(text: str) -> str:
    """A text in which unprintable characters (and those that change the direction of text) are
    escaped: names of files may contain anything."""
    return "".join(
        character if character.isprintable() else ascii(character)[1:-1] for character in text
    )
