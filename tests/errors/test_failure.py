# SPDX-License-Identifier: Apache-2.0
"""What is shown of values that are not ours is one line, whatever showing them does."""

from __future__ import annotations

import ctypes
import errno

import pytest

from ferryvm.failure import (
    MOST,
    described,
    is_ctrl_c,
    is_out_of_memory,
    kind_of,
    one_line,
    shown,
    text_of,
)


class RaisingError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class NoTextError(Exception):
    def __str__(self) -> str:
        return 5  # type: ignore[return-value]  # noqa: PLE0307 - what is tested

    __repr__ = __str__


class LeavingError(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)


class HiddenError(Exception):
    @property
    def __traceback__(self) -> None:  # type: ignore[override]  # what is tested
        raise RuntimeError("hidden")


class Naming(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]  # what is tested
        raise RuntimeError("no name")


class NamelessError(Exception, metaclass=Naming):
    pass


class Text(str):
    def split(self, *_: object) -> list[str]:  # type: ignore[override]  # what is tested
        raise RuntimeError("cannot be split")

    __getitem__ = __len__ = __iter__ = split  # type: ignore[assignment]  # what is tested


class SubtextError(Exception):
    def __str__(self) -> str:
        return Text("a\nb")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (RaisingError(), "RaisingError: its text cannot be had, RuntimeError was raised"),
        (NoTextError(), "NoTextError: its text cannot be had, TypeError was raised"),
        (LeavingError(), "LeavingError: its text cannot be had, SystemExit was raised"),
        (HiddenError("x"), "HiddenError: x"),
        (NamelessError("x"), "NamelessError: x"),
        (SubtextError(), "SubtextError: a b"),
        (ValueError("a\x1b[2Jb\ud800"), r"ValueError: a\x1b[2Jb\ud800"),
        (KeyError("k"), "KeyError: 'k'"),
        (SystemExit(3), "SystemExit: 3"),
    ],
    ids=lambda value: type.__dict__["__name__"].__get__(type(value)),
)
def test_an_exception_is_one_line_whatever_showing_it_does(
    error: BaseException, expected: str
) -> None:
    with pytest.raises(type(error)) as caught:
        raise error
    line = described(caught.value)
    assert line.startswith(expected)
    assert line.endswith(" in test_an_exception_is_one_line_whatever_showing_it_does)")


def test_a_gigantic_text_is_cut_in_its_middle() -> None:
    line = text_of(ValueError("begin " + "x" * 10_000_000 + " end"))
    assert line.startswith("begin xxx")
    assert line.endswith("xxx end")
    assert "9998010 characters" in line
    assert len(line) < MOST + 100


def test_a_value_without_a_repr_is_told_by_its_kind() -> None:
    assert shown(RaisingError()) == kind_of(RaisingError()) == "a RaisingError"
    assert shown("a\nb") == r"'a\nb'"
    assert kind_of(NamelessError) == "the class NamelessError"
    assert one_line("  a \n b\t") == "a b"


def test_ctrl_c_is_seen_behind_what_an_import_makes_of_it() -> None:
    error = ImportError("no module")
    error.__cause__ = KeyboardInterrupt()
    assert is_ctrl_c(error)
    assert not is_ctrl_c(ImportError("no module"))


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        RuntimeError("can't allocate lock"),
        TypeError("expected str, bytes or os.PathLike object, not PosixPath"),
        TypeError("replace: dst should be string, bytes or os.PathLike, not PosixPath"),
        TypeError("stat: path should be string, bytes, os.PathLike or integer, not PosixPath"),
        ctypes.ArgumentError("argument 1: MemoryError: "),
        ImportError("numpy/x.so: failed to map segment from shared object\n"),
        SystemError("NULL object passed to Py_BuildValue"),
        SystemError("error return without exception set"),
        SystemError("<method 'x'> returned NULL without setting an exception"),
    ],
)
def test_memory_that_is_short_is_known_under_all_its_names(error: BaseException) -> None:
    assert is_out_of_memory(error)
    assert described(error).startswith(("MemoryError", "OSError: [Errno 12]"))


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        RuntimeError("can't start new thread"),
        TypeError("expected str, bytes or os.PathLike object, not int"),
        SystemError("initialization of x raised unreported exception"),
        RaisingError(),
    ],
)
def test_other_errors_are_not_taken_for_want_of_memory(error: BaseException) -> None:
    assert not is_out_of_memory(error)
