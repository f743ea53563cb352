# SPDX-License-Identifier: Apache-2.0
"""Every instruction of the table is a method, with its documentation and a signature."""

import importlib.resources
import inspect
import keyword
from collections.abc import Sequence

import pytest

from ferryvm.build import I64, BuildError, Function, Program, Signature
from ferryvm.build.body import method_name
from ferryvm.build.stub import stub
from ferryvm.isa import F32, INSTRUCTIONS, Flow, Immediate, Instruction, Type
from ferryvm.isa.table import Operand, Variable
from ferryvm.isa.type import Reference
from ferryvm.verify import verify


@pytest.mark.parametrize("row", INSTRUCTIONS, ids=lambda row: row.mnemonic)
def test_an_instruction_is_a_method_that_says_what_the_table_says(row: Instruction) -> None:
    name = method_name(row)
    method = getattr(Function, name)
    assert name in dir(Function)
    assert name.isidentifier()
    assert not keyword.iskeyword(name)
    assert method.__name__ == name
    assert row.effect in method.__doc__
    assert row.summary in method.__doc__
    parameters = list(inspect.signature(method).parameters)
    assert len(parameters) == 1 + (row.immediate not in (Immediate.NONE, Immediate.RESULTS))


def test_the_stub_is_what_the_table_says() -> None:
    written = importlib.resources.files("ferryvm.build").joinpath("instruction.pyi").read_text()
    assert written == stub(), "python -m ferryvm.build.stub > core/ferryvm/build/instruction.pyi"


def test_no_method_of_an_instruction_hides_another() -> None:
    own = {name for name in vars(Function) if not name.startswith("__")}
    assert not own & {method_name(row) for row in INSTRUCTIONS}
    assert len({method_name(row) for row in INSTRUCTIONS}) == len(INSTRUCTIONS)


def _push(f: Function, type_: Type | Reference) -> None:
    if isinstance(type_, Reference):
        f.ref_null(type_)
    else:
        getattr(f, f"{type_}_const")(0)


STRAIGHT_FLOWS = (Flow.NEXT, Flow.BRANCH, Flow.STOP, Flow.THROW)
STRAIGHT = [
    row
    for row in INSTRUCTIONS
    if row.flow in STRAIGHT_FLOWS and row.immediate is not Immediate.ITEM
]


@pytest.mark.parametrize("row", STRAIGHT, ids=lambda row: row.mnemonic)
def test_the_builder_takes_what_the_verifier_takes(row: Instruction) -> None:
    p = Program()
    f = p.function("f", [I64])
    node = p.struct("node", {"value": F32})
    node.field("next", node)
    ref = node.array.type if row.immediate is Immediate.ARRAY else node.type
    open_types: dict[str, Type | Reference] = {"t": I64, "u": I64, "ref": ref}
    if row.immediate in (Immediate.ARRAY, Immediate.FIELD):
        open_types["t"] = node.type
    fields = [field.type for field in node] if row.immediate is Immediate.FIELDS else []

    def settled(operands: Sequence[Operand]) -> list[Type | Reference]:
        return [open_types[t.name] if isinstance(t, Variable) else t for t in operands]

    for t in (*fields, *settled(row.pops)):
        _push(f, t)
    label = f.label()
    arguments: dict[Immediate, object] = {
        Immediate.NONE: (),
        Immediate.LOCAL: f.parameters,
        Immediate.STATIC: (p.static("s", I64),),
        Immediate.OFFSET: (8,),
        Immediate.TARGET: (label,),
        Immediate.TAG: (p.tag("e", []),),
        Immediate.TYPE: (node,),
        Immediate.FIELDS: (node,),
        Immediate.STRUCT: (node,),
        Immediate.ARRAY: (node.array,),
        Immediate.FIELD: (node["next"],),
    }
    method = getattr(f, method_name(row))
    method(*arguments.get(row.immediate, (1,)))
    if f.is_reachable:
        assert f.stack == tuple(settled(row.pushes))
        for _ in f.stack:
            f.drop()
    f.place(label)
    f.return_()
    verify(p.build())


@pytest.mark.parametrize("row", [row for row in STRAIGHT if row.pops], ids=lambda row: row.mnemonic)
def test_each_operand_is_checked(row: Instruction) -> None:
    for wrong in range(len(row.pops)):
        f = Program().function("f", [I64])
        if row.immediate not in (Immediate.NONE, Immediate.OFFSET):
            return
        taken = [I64 if isinstance(t, Variable) else t for t in row.pops]
        if isinstance(row.pops[wrong], Variable):
            continue
        taken[wrong] = next(t for t in Type if t is not taken[wrong])
        for t in taken:
            _push(f, t)
        with pytest.raises(BuildError, match=f"{method_name(row)} takes"):
            getattr(f, method_name(row))()


def test_a_call_of_an_effect_that_is_known_is_checked_like_the_first() -> None:
    p = Program()
    g = p.function("g", [I64], [I64])
    f = p.function("f")
    f.i64_const(1)
    for _ in range(3):
        f.call(g)
    f.drop()
    with pytest.raises(BuildError, match=r"call takes \(i64\), the stack has \(\)"):
        f.call(g)
    f.f64_const(1)
    with pytest.raises(BuildError, match=r"call_indirect takes \(i64 i32\)"):
        f.call_indirect(Signature((I64,)))
