# SPDX-License-Identifier: Apache-2.0
"""Values and attributes that raise where they are looked at."""

from __future__ import annotations


class Evil(str):
    """A text whose methods raise."""

    def split(self, *_: object) -> list[str]:  # type: ignore[override]  # what is tested
        raise RuntimeError("no")

    __eq__ = __len__ = __getitem__ = __format__ = __repr__ = split  # type: ignore[assignment]  # as above
    __hash__ = str.__hash__


class Bomb(BaseException):
    """An exception without a text."""

    def __str__(self) -> str:
        raise SystemExit(1)


def raise_it(error: BaseException) -> object:
    """Raise an exception, as an expression."""
    raise error


def raising(error: BaseException) -> property:
    """A property that raises."""
    return property(lambda _self: raise_it(error))
