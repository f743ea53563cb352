# SPDX-License-Identifier: Apache-2.0
"""A kind of file for the tests: keys of every type that can be declared."""

from __future__ import annotations

import enum
from typing import Annotated, Any, Literal

import pydantic

from ferryvm.toml.allowed import Words
from ferryvm.toml.fault import PlacedFault, TomlFault
from ferryvm.toml.reading import examine
from ferryvm.toml.table import Table, key_faults


class Colour(enum.Enum):
    RED = "red"
    DARK_RED = "dark_red"


Size = Annotated[int, pydantic.Field(ge=1, le=64)]
Name = Annotated[str, pydantic.Field(pattern="^[a-z]+$"), Words("small letters", "small words")]


class StepKeys(Table):
    size: Size
    weight: float = 1.0


def _step(entry: object) -> object:
    return {"size": entry} if isinstance(entry, int) else entry


Step = Annotated[
    StepKeys, pydantic.BeforeValidator(_step), Words("a size, or a table with a size", "steps")
]


class InnerKeys(Table):
    deep: list[StepKeys] = pydantic.Field([])
    flag: bool


class SampleKeys(Table):
    any_whole: int = 0
    size: Size | None = None
    least: Annotated[int, pydantic.Field(ge=0)] = 0
    most: Annotated[int, pydantic.Field(le=10**12)] = 0
    share: Annotated[float, pydantic.Field(gt=0, lt=1)] = 0.5
    rate: Annotated[float, pydantic.Field(gt=0, le=1_234_567)] = 1.0
    text: str = ""
    name: Name = "a"
    choice: Literal["one", "two"] = "one"
    colour: Annotated[Colour, pydantic.Field(strict=False)] = Colour.RED
    texts: list[str] = pydantic.Field([])
    names: list[Name] = pydantic.Field([])
    sizes: list[Size] = pydantic.Field([])
    flags: list[bool] = pydantic.Field([])
    choices: list[Literal["one", "two"]] = pydantic.Field([])
    rows: list[list[int]] = pydantic.Field([])
    free: dict[str, int] = pydantic.Field({})
    steps: dict[Annotated[Colour, pydantic.Field(strict=False)], Step] = pydantic.Field({})
    inner: InnerKeys | None = None
    part: list[InnerKeys] = pydantic.Field([])


def read(text: str) -> tuple[dict[str, Any] | None, tuple[PlacedFault, ...]]:
    """The document of a text without errors, and all faults; `odd = true` is a warning."""

    def judge(document: dict[str, Any]) -> tuple[dict[str, Any] | None, list[TomlFault]]:
        if document.pop("odd", False):
            return document, [TomlFault(("odd",), "is odd", is_warning=True)]
        faults = list(key_faults(SampleKeys, document))
        return (None if faults else document), faults

    return examine(text, "s.toml", SampleKeys, judge)


def said(text: str) -> list[str]:
    """The faults of a text, a line each."""
    return [str(one) for one in read(text)[1]]
