# SPDX-License-Identifier: Apache-2.0
"""The options `--stack-limit`, `--heap-limit` and `--object-limit` of commands that run
programs."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ferryvm.machine.memory import Limits

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_R = TypeVar("_R")

if TYPE_CHECKING:
    _Parameter = click.ParamType[int]
else:
    _Parameter = click.ParamType  # older releases of click are not generic at run time


class Size(_Parameter):
    """Bytes, as a number with an optional K, M or G."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        match = re.fullmatch(r"(\d+)([KMG]?)", str(value).upper())
        if match is None:
            self.fail(f"{value!r} is no size such as 65536, 64K, 16M or 4G", param, ctx)
        return int(match[1]) * _UNITS[match[2]]


_OPTIONS = (
    click.option("--stack-limit", type=Size(), metavar="SIZE", help="Bytes of stack (64M)."),
    click.option(
        "--heap-limit", type=Size(), metavar="SIZE", help="Bytes that the heap may grow to (4G)."
    ),
    click.option(
        "--object-limit",
        type=Size(),
        metavar="SIZE",
        help="Bytes that live objects may take, elements of arrays included (4G).",
    ),
)


def limited(command: Callable[..., _R]) -> Callable[..., _R]:
    """A command with these options; its function gets `limits`, None if no option is given."""

    @functools.wraps(command)
    def with_limits(
        *arguments: Any,
        stack_limit: int | None,
        heap_limit: int | None,
        object_limit: int | None,
        **options: Any,
    ) -> _R:
        given = {"stack": stack_limit, "heap": heap_limit, "objects": object_limit}
        known: dict[str, Any] = {name: size for name, size in given.items() if size is not None}
        return command(
            *arguments, limits=dataclasses.replace(Limits(), **known) if known else None, **options
        )

    made: Callable[..., _R] = with_limits
    for option in reversed(_OPTIONS):
        made = option(made)
    return made
