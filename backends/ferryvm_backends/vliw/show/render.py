# SPDX-License-Identifier: Apache-2.0
"""The page of a schedule."""

from __future__ import annotations

import functools

import jinja2

from ferryvm.page import template
from ferryvm.program import SourceMap
from ferryvm_backends.vliw.code.program import Program
from ferryvm_backends.vliw.show.view import picture


@functools.cache
def _template() -> jinja2.Template:
    return template(__package__)


def page(program: Program, source_map: SourceMap) -> str:
    """The page of a program, as HTML."""
    return _template().render(picture=picture(program, source_map))
