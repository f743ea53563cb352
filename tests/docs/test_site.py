# SPDX-License-Identifier: Apache-2.0
"""What docs/site.py derives for the site; `make site` builds all of it."""

from __future__ import annotations

import types

import pytest

from .test_api import PUBLIC, ROOT, SITE


def _turned(page: str, text: str) -> str:
    """The text of a page of the repository with the links that it has in the site."""
    file = types.SimpleNamespace(
        src_uri=SITE._site_path(ROOT / page), abs_src_path=str(ROOT / page)
    )
    return str(SITE.on_page_markdown(text, types.SimpleNamespace(file=file), None, None))


@pytest.mark.parametrize(
    ("page", "link", "turned"),
    [
        ("docs/ir.md", "[a](vliw.md#b)", "[a](vliw.md#b)"),
        (
            "docs/conformance.md",
            "[a](../examples/c-backend/README.md)",
            "[a](source/examples/c-backend/README.md)",
        ),
        (
            "docs/conformance.md",
            "[a](../examples/c-backend)",
            "[a](source/examples/c-backend/README.md)",
        ),
        ("docs/decisions/x.md", "[a](../ir.md)", "[a](../ir.md)"),
        ("examples/c-backend/README.md", "[a](../../docs/isa.md)", "[a](../../../isa.md)"),
        ("docs/ir.md", "[a](https://example.org) [b](#c)", "[a](https://example.org) [b](#c)"),
        ("docs/ir.md", "```\n[a](../README.md)\n```", "```\n[a](../README.md)\n```"),
    ],
)
def test_a_link_leads_to_where_the_file_is_in_the_site(page: str, link: str, turned: str) -> None:
    assert _turned(page, link) == turned


def test_each_public_name_is_documented_on_the_page_of_one_module() -> None:
    homes = SITE._homes(PUBLIC)
    assert homes["ferryvm", "Engine"] == homes["ferryvm.engine", "Engine"] == "ferryvm.engine"
    assert homes["ferryvm.isa", "F32"] == "ferryvm.isa.type"
    page = SITE._reference("ferryvm", PUBLIC["ferryvm"], homes)
    assert "::: ferryvm.compile" in page
    assert "(ferryvm.engine.md#ferryvm.engine.engine.Engine)" in page


def test_the_navigation_has_every_section_of_the_index() -> None:
    sections = [title for entry in SITE._navigation() for title in entry]
    assert sections[0] == "Documentation"
    assert "To write programs" in sections
    assert "Design decisions" in sections
