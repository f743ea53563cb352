# SPDX-License-Identifier: Apache-2.0
"""Types of references along control flow: subtypes are taken, paths join in the least supertype."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ferryvm import Program
from ferryvm.isa import BY_MNEMONIC
from ferryvm.verify import Verified, verify
from ferryvm.verify.type_flow import TypeFlow

DECLARED = (
    ".struct node value i64 / .struct leaf extends node more i64 / .struct twig extends node / "
    ".struct other value i64 / "
)


def types_before(verified: Verified, mnemonic: str) -> list[str]:
    """Types of the operands before the first instruction of that name."""
    pc = verified.program.code.opcodes.tolist().index(BY_MNEMONIC[mnemonic].opcode)
    return [str(t) for t in verified.operand_types(pc)]


@pytest.mark.parametrize(
    ("left", "right", "joined"),
    [
        ("leaf", "node", "node"),
        ("node", "leaf", "node"),
        ("leaf", "twig", "node"),
        ("leaf", "leaf", "leaf"),
        ("leaf", "other", "anyref"),
        ("f64[]", "i8[]", "arrayref"),
        ("node[]", "leaf[]", "arrayref"),
        ("node[]", "node", "anyref"),
        ("i31ref", "u8[]", "anyref"),
    ],
)
def test_paths_join_in_the_least_common_supertype(
    left: str, right: str, joined: str, assemble: Callable[[str], Program]
) -> None:
    text = (
        f".function main / i64.const 7 / i32.const 1 / jump_if a / ref.null {left} / jump b / :a / "
        f"ref.null {right} / :b / nop / halt"
    )
    assert types_before(verify(assemble(DECLARED + text)), "nop") == ["i64", joined]


def test_back_edge_changes_the_types_of_the_whole_loop(assemble: Callable[[str], Program]) -> None:
    text = (
        ".function main / ref.null leaf / :a / nop / drop / ref.null twig / i32.const 1 / "
        "jump_if a / halt"
    )
    verified = verify(assemble(DECLARED + text))
    assert types_before(verified, "nop") == ["node"]
    assert types_before(verified, "halt") == ["twig"]


def test_subtypes_are_taken_wherever_a_type_is_declared(assemble: Callable[[str], Program]) -> None:
    text = (
        ".static s anyref / .function main / .local node / ref.null leaf / local.set 0 / "
        "ref.null leaf / static.set s / ref.null leaf / call f / drop / "
        "i64.const 1 / array.new_default_ref node[] / i64.const 0 / ref.null leaf / "
        "array.set_ref node[] / ref.null f64[] / array.length / drop / halt / "
        ".function f (node) -> anyref / local.get 0 / return"
    )
    verify(assemble(DECLARED + text))


def test_select_of_two_types_is_of_their_supertype(assemble: Callable[[str], Program]) -> None:
    text = ".function main / ref.null leaf / ref.null twig / i32.const 0 / select / nop / halt"
    assert types_before(verify(assemble(DECLARED + text)), "nop") == ["node"]


def test_handler_has_the_supertype_of_what_is_below_it_at_each_throw(
    assemble: Callable[[str], Program],
) -> None:
    text = (
        ".function main / ref.null leaf / :a / call f / drop / ref.null twig / call f / :b / halt / "
        ":h / nop / halt / .catch_all from a to b using h depth 1 / .function f / return"
    )
    assert types_before(verify(assemble(DECLARED + text)), "nop") == ["node"]


def test_work_does_not_grow_with_the_depth_at_which_stacks_differ(
    assemble: Callable[[str], Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Labels above a deep stack, whose deepest operand has another type on each path."""
    steps: list[int] = []
    reach = TypeFlow._reach
    monkeypatch.setattr(
        TypeFlow, "_reach", lambda self, *rest: (steps.append(1), reach(self, *rest))[1]
    )

    def program(count: int) -> Program:
        ladder = " / ".join(f"i32.const 1 / jump_if l{n} / nop / :l{n}" for n in range(count))
        return assemble(
            DECLARED
            + ".function main / i32.const 1 / jump_if a / ref.null leaf / jump b / :a / "
            + "ref.null twig / :b / "
            + "i64.const 1 / " * count
            + ladder
            + " / halt"
        )

    verified = verify(program(50))
    few = len(steps), len(verified._stacks.parents)
    steps.clear()
    verified = verify(program(100))
    assert len(steps) <= 2.5 * few[0]
    assert len(verified._stacks.parents) <= 2.5 * few[1]
