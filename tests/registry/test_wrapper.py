# SPDX-License-Identifier: Apache-2.0
"""What wraps a backend, an artifact or code answers as the wrapped one does, whatever is asked."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from unittest import mock

import pytest

from ferryvm import backend, wrapper

PAIRS = [
    (backend.Interpreter, wrapper.InterpreterWrapper),
    (backend.Artifact, wrapper.ArtifactWrapper),
    (backend.Compiler, wrapper.CompilerWrapper),
    (backend.Code, wrapper.CodeWrapper),
]
both = pytest.mark.parametrize(("contract", "wrapping"), PAIRS, ids=lambda one: one.__name__)


def contract_of(contract: type) -> Mapping[str, object]:
    """The public names of a contract, with what the class has for each."""
    annotated = {name for one in contract.__mro__ for name in inspect.get_annotations(one)}
    names = {name for name in dir(contract) if not name.startswith("_")} | annotated
    return {name: getattr(contract, name, None) for name in names if not name.startswith("_")}


@both
def test_all_that_the_contract_has_is_that_of_the_wrapped(contract: type, wrapping: type) -> None:
    inner = mock.create_autospec(contract, instance=True, spec_set=False)
    asked = contract_of(contract)
    for name, member in asked.items():
        if not callable(member):
            setattr(inner, name, mock.sentinel.inner)
    outer = wrapping(inner)
    for name, member in asked.items():
        if not callable(member):
            assert getattr(outer, name) is mock.sentinel.inner, name
            continue
        arguments = [mock.sentinel.argument] * (len(inspect.signature(member).parameters) - 1)
        called = getattr(inner, name)
        called.return_value = mock.sentinel.answer
        answer = getattr(outer, name)(*arguments)
        called.assert_called_once_with(*arguments)
        assert answer is mock.sentinel.answer or inspect.signature(member).return_annotation in (
            None,
            "None",
        )


def test_what_is_prepared_can_be_replaced_in_one_place() -> None:
    class Other(wrapper.InterpreterWrapper):
        def wrapped(self, program: object, artifact: object) -> backend.Artifact:
            replaced.append((program, artifact))
            return mock.sentinel.mine  # type: ignore[no-any-return]

    replaced: list[object] = []
    inner = mock.create_autospec(backend.Interpreter, instance=True)
    for name in ("name", "version", "protocol", "capabilities"):
        setattr(inner, name, mock.sentinel.inner)
    inner.prepare.return_value = inner.prepare_forced.return_value = mock.sentinel.theirs
    other = Other(inner)
    program = mock.sentinel.program
    assert other.prepare(program) is mock.sentinel.mine
    assert other.prepare_forced(program, frozenset()) is mock.sentinel.mine
    assert replaced == [(program, mock.sentinel.theirs)] * 2
