# SPDX-License-Identifier: Apache-2.0
"""Weights: data that can be replaced in part, and faults in it that are told in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferryvm.errors import FerryError
from ferryvm.image import to_bytes
from ferryvm.isa import BY_MNEMONIC
from ferryvm.testing.generate import ProgramKind, Weights, generate, skiff_source
from ferryvm.testing.generate.item import ItemStatements
from ferryvm.testing.generate.skiff import Writer
from ferryvm.testing.generate.statement import Statements
from ferryvm.testing.generate.weights import default
from ferryvm.verify import verify


def load(tmp_path: Path, text: str) -> Weights:
    path = tmp_path / "weights.toml"
    path.write_text(text, encoding="utf-8")
    return Weights.load(path)


@pytest.mark.parametrize(
    ("ways", "sections", "prefix"),
    [
        (Statements, ("statement", "launch_statement"), "statement"),
        (Statements, ("object_statement",), "object"),
        (Statements, ("value", "object_value"), "value"),
        (Statements, ("reference",), "reference"),
        (Statements, ("trap", "object_trap", "launch_trap"), "trap"),
        (ItemStatements, ("item",), "item"),
        (Writer, ("skiff_statement", "skiff_launch", "skiff_item"), "statement"),
        (Writer, ("skiff_value", "skiff_launch_value"), "value"),
    ],
)
def test_every_way_to_generate_has_a_weight_above_0(
    ways: type, sections: tuple[str, ...], prefix: str
) -> None:
    table = {key: w for name in sections for key, w in getattr(default(), name).items()}
    names = {name for name in dir(ways) if name.startswith(f"{prefix}_")}
    assert names == {f"{prefix}_{key}" for key in table}
    assert all(weight > 0 for weight in table.values())


def test_file_changes_what_it_names_and_nothing_else(tmp_path: Path) -> None:
    changed = load(
        tmp_path, '[statement]\nbranch = 100\n[functions]\n3 = 1\n[instruction]\n"i32.ctz" = 9'
    )
    assert changed.statement == {**default().statement, "branch": 100}
    assert changed.functions == {"3": 1}
    assert changed.instruction["i32.ctz"] == 9
    assert changed.value == default().value


def test_weights_decide_what_is_generated(tmp_path: Path) -> None:
    text = "[functions]\n0 = 1\n[chance]\nmain_loop = 0\nrisky = 0\nobjects = 0\nlaunches = 0\n[statement]\n"
    text += "\n".join(f"{key} = 0" for key in default().statement if key != "nop")
    plain = load(tmp_path, text)
    for number in range(20):
        program = generate(1, number, weights=plain)
        verify(program)
        opcodes = program.code.opcodes.tolist()
        assert opcodes.count(BY_MNEMONIC["nop"].opcode) > 20
        assert not {BY_MNEMONIC[name].opcode for name in ("host", "enter_jit")} & set(opcodes)
        assert len(program.functions) == 1


def test_weights_of_skiff_decide_too(tmp_path: Path) -> None:
    text = "[skiff_statement]\n"
    text += "\n".join(f"{key} = 0" for key in default().skiff_statement if key != "print")
    assert "while" not in skiff_source(1, 1, load(tmp_path, text))
    assert any("while" in skiff_source(1, number) for number in range(5))


def test_empty_file_changes_nothing(tmp_path: Path) -> None:
    same = load(tmp_path, "")
    assert to_bytes(generate(1, 2, weights=same)) == to_bytes(generate(1, 2))
    assert skiff_source(1, 2, same) == skiff_source(1, 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[statment]\n", "no section 'statment'; did you mean 'statement'?"),
        ("[value]\nnumerik = 1", "[value]: no key 'numerik'; did you mean 'numeric'?"),
        (
            '[instruction]\n"i64.popcn" = 1',
            "[instruction]: no key 'i64.popcn'; did you mean 'i64.popcnt'?",
        ),
        ("[trips]\nmany = 1", "[trips] many: keys are numbers from 0 to 500 here"),
        ("[trips]\n501 = 1", "[trips] 501: keys are numbers from 0 to 500 here"),
        ("[value]\nleaf = -1", "[value] leaf: a number from 0 to 1e+09 expected, found -1"),
        ("[value]\nleaf = nan", "[value] leaf: a number from 0 to 1e+09 expected, found nan"),
        ("[value]\nleaf = true", "[value] leaf: a number from 0 to 1e+09 expected, found True"),
        ('[value]\nleaf = "1"', "[value] leaf: a number from 0 to 1e+09 expected, found '1'"),
        ("[chance]\nrisky = 2", "[chance] risky: a number from 0 to 1 expected, found 2"),
        ("value = 3", "[value] is a section of weights, found 3"),
        ("[work]\n300 = 0", "[work]: one weight at least must be above 0"),
        ("[work", "weights.toml: "),
    ],
)
def test_fault_in_a_file_is_told_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FerryError) as caught:
        load(tmp_path, text)
    told = str(caught.value)
    assert message in told
    assert str(tmp_path / "weights.toml") in told
    assert "\n" not in told


def test_file_that_is_not_there_is_told() -> None:
    with pytest.raises(FerryError, match=r"^absent\.toml: cannot be read: No such file"):
        Weights.load("absent.toml")


def test_mutated_image_is_no_program_to_generate() -> None:
    with pytest.raises(FerryError, match="use mutated_image"):
        generate(1, 1, ProgramKind.IMAGE)
