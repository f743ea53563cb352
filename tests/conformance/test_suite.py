# SPDX-License-Identifier: Apache-2.0
"""The conformance suite sees what is wrong, says what it skipped, and counts nothing as more."""

from __future__ import annotations

import re
import signal
import threading
import types
from collections.abc import Callable
from pathlib import Path

import pytest

from ferryvm.backend import (
    Artifact,
    BackendError,
    Capabilities,
    Code,
    Compiler,
    Options,
    RefusalError,
)
from ferryvm.engine import runnable
from ferryvm.errors import FerryError, UnknownNameError
from ferryvm.hooks import BackendEntry, hookimpl
from ferryvm.isa import INSTRUCTIONS
from ferryvm.isa.evaluation import PythonArithmetic
from ferryvm.machine.control import Status
from ferryvm.machine.state import Machine
from ferryvm.region.region import Region
from ferryvm.registry import Registry
from ferryvm.testing.conformance import case as case_module
from ferryvm.testing.conformance import suite
from ferryvm.testing.conformance.case import cases, read
from ferryvm.testing.conformance.expected import check_expected, expect, read_expected
from ferryvm.testing.conformance.manner import MANNERS
from ferryvm.testing.conformance.record import CaseError, Task, walk
from ferryvm.testing.conformance.suite import Item, ItemVerdict, checks, items
from ferryvm.verify import Verified
from ferryvm_backends import ferryvm_backends

from ..double.conformance import WRONG
from ..double.interpreter import Wrong

ITEMS = {item.label: item for item in items()}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_backend_fails_and_the_field_is_named(name: str) -> None:
    enter, label, field = WRONG[name]
    outcome = ITEMS[label].run(Wrong(enter))
    assert outcome.verdict is ItemVerdict.FAILED
    assert outcome.fault is not None
    assert outcome.fault.field.startswith(field)
    assert outcome.fault.expected != outcome.fault.found
    assert outcome.message.splitlines()[1] == f"  {outcome.fault.field}"


@pytest.mark.parametrize("label", sorted({label for _, label, _ in WRONG.values()}))
def test_the_same_cases_pass_where_nothing_is_wrong(label: str) -> None:
    assert ITEMS[label].run(Wrong()).verdict is ItemVerdict.PASSED


def test_backend_that_never_looks_at_the_flag_fails_instead_of_staying() -> None:
    let_go = threading.Event()

    def deaf(real: Artifact, machine: Machine, counting: bool) -> Status:
        while True:
            machine.control.interrupt = let_go.is_set()
            machine.control.fuel = 1000
            status = real.enter(machine, True)
            if let_go.is_set():
                return status

    try:
        outcome = ITEMS["interrupt/jump/interrupted"].run(Wrong(deaf), patience=0.2)
    finally:
        let_go.set()
    assert outcome.verdict is ItemVerdict.FAILED
    assert outcome.message.endswith("expected: leaves within 0.2 s\n    found:    it does not")


def test_program_that_does_not_come_to_its_end_is_stopped() -> None:
    def lost(real: Artifact, machine: Machine, counting: bool) -> Status:
        while not machine.control.interrupt:
            pass
        machine.control.status = Status.INTERRUPTED
        return Status.INTERRUPTED

    outcome = ITEMS["fuel/straight/counting"].run(Wrong(lost), patience=0.1)
    assert outcome.fault is not None
    assert (outcome.fault.expected, outcome.fault.found) == ("leaves within 0.1 s", "it does not")


def test_what_needs_fuel_is_skipped_where_none_is_counted_and_the_rest_is_run() -> None:
    backend = Wrong(capabilities=Capabilities(fuel=False))
    outcome = ITEMS["fuel/straight/cuts"].run(backend)
    assert (outcome.verdict, outcome.reason) == (
        ItemVerdict.SKIPPED,
        "it does not count instructions",
    )
    for label in ("value/nan/plain", "value/nan/entries", "interrupt/jump/interrupted"):
        assert ITEMS[label].run(backend).verdict is ItemVerdict.PASSED


@pytest.mark.nightly
def test_what_needs_more_heap_than_is_declared_is_skipped() -> None:
    backend = Wrong(capabilities=Capabilities(heap=1 << 16))
    outcome = ITEMS["instruction/heap.alloc/plain"].run(backend)
    assert outcome.verdict is ItemVerdict.SKIPPED
    assert outcome.reason.startswith("it addresses 65536 bytes of heap, ")
    assert ITEMS["instruction/i64.load/plain"].run(backend).verdict is ItemVerdict.PASSED


def test_refused_program_is_no_pass() -> None:
    class Picky(Wrong):
        def accepts(self, program: Verified) -> str | None:
            return "no floats" if len(program.program.statics) > 1 else None

    outcome = ITEMS["value/nan/plain"].run(Picky())
    assert (outcome.verdict, outcome.reason) == (ItemVerdict.REFUSED, "no floats")
    assert ITEMS["fuel/straight/counting"].run(Picky()).verdict is ItemVerdict.PASSED


class Raising(Compiler):
    name = "raising"
    version = "1"

    def __init__(self, error: Exception) -> None:
        self.error = error

    def compile(self, region: Region, options: Options) -> Code:
        raise self.error


@pytest.mark.parametrize(
    ("error", "verdict", "told"),
    [
        (RefusalError("no floats"), ItemVerdict.REFUSED, "region program: no floats"),
        (KeyError("x"), ItemVerdict.FAILED, "region program: it raised KeyError: 'x'"),
        (BackendError("no memory"), ItemVerdict.FAILED, "region program: no memory"),
    ],
)
def test_compiler_that_raises_fails_and_only_one_that_refuses_is_refused(
    error: Exception, verdict: ItemVerdict, told: str
) -> None:
    registry = Registry()
    plugin = types.SimpleNamespace(
        ferryvm_backends=hookimpl(lambda: [BackendEntry("raising", lambda: Raising(error))])
    )
    registry.register(plugin, "test")
    outcome = ITEMS["fuel/straight/counting"].run(runnable(registry, "raising"))
    assert outcome.verdict is verdict
    assert told in outcome.message


def test_item_without_a_script_is_no_pass() -> None:
    outcome = Item("instruction", "nosuch", "plain", "Nothing").run(Wrong())
    assert outcome.verdict is ItemVerdict.FAILED
    assert outcome.message == "instruction/nosuch/plain: there is nothing to do: no script"


def test_backend_that_fails_to_prepare_fails() -> None:
    class Unable(Wrong):
        def prepare(self, program: Verified) -> Artifact:
            raise OSError("no device")

    outcome = ITEMS["fuel/straight/counting"].run(Unable())
    assert outcome.verdict is ItemVerdict.FAILED
    assert "found:    raises OSError: no device\n              at " in outcome.message
    assert f"at {__file__}:" in outcome.message


@pytest.mark.parametrize("member", ["prepare", "accepts"])
@pytest.mark.parametrize("answer", [0, True, object])
def test_answer_that_is_none_of_the_contract_s_fails(member: str, answer: object) -> None:
    backend = Wrong()
    setattr(backend, member, lambda _program: answer)
    outcome = ITEMS["fuel/straight/counting"].run(backend)
    assert outcome.verdict is ItemVerdict.FAILED
    assert outcome.fault is not None
    assert (outcome.fault.field, outcome.fault.found) == (member, repr(answer))


def test_backend_that_prepares_nothing_fails() -> None:
    backend = Wrong()
    backend.prepare = lambda _program: None  # type: ignore[assignment, method-assign, return-value] # the fault
    outcome = ITEMS["fuel/straight/counting"].run(backend)
    assert outcome.message.endswith("expected: an Artifact\n    found:    None")


@pytest.mark.parametrize("kind", [SystemExit, GeneratorExit, KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("label", ["fuel/straight/counting", "interrupt/jump/interrupted"])
def test_whatever_a_backend_raises_is_a_failure(kind: type[BaseException], label: str) -> None:
    def raising(real: Artifact, machine: Machine, counting: bool) -> Status:
        raise kind("the first line\nand the second")

    outcome = ITEMS[label].run(Wrong(raising))
    assert outcome.verdict is ItemVerdict.FAILED
    assert outcome.fault is not None
    first, second, place, *_ = outcome.fault.found.splitlines()
    assert (first, second) == (f"raises {kind.__name__}: the first line", "and the second")
    assert re.fullmatch(rf"at {re.escape(__file__)}:\d+, raising", place)


def test_ctrl_c_is_not_the_backend_s() -> None:
    def pressed(real: Artifact, machine: Machine, counting: bool) -> Status:
        signal.raise_signal(signal.SIGINT)
        return real.enter(machine, counting)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        ITEMS["fuel/straight/counting"].run(Wrong(pressed))
    assert signal.getsignal(signal.SIGINT) is before


def test_backend_that_takes_no_case_fails_with_its_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    few = tuple(item for item in items() if item.group in ("host", "saved"))
    admission = checks()[0]
    monkeypatch.setattr(suite, "items", lambda: few)
    assert admission.label == "backend/accepts/anything"
    assert admission.run(Wrong()).verdict is ItemVerdict.PASSED
    backend = Wrong(capabilities=Capabilities(fuel=False))
    backend.accepts = lambda _program: "no"  # type: ignore[assignment, method-assign] # the fault
    outcome = admission.run(backend)
    assert outcome.verdict is ItemVerdict.FAILED
    first, *reasons = outcome.message.splitlines()
    assert first == "it takes no case at all"
    assert {reason.partition(": ")[2] for reason in reasons} == {
        "no",
        "it does not count instructions",
    }
    backend.accepts = lambda _program: 1 / 0  # type: ignore[assignment, method-assign, return-value] # the fault
    assert "raises ZeroDivisionError" in admission.run(backend).message


# --- expected failures ----------------------------------------------------------------------


def _verdicts(*failing: str) -> Callable[[Item], ItemVerdict]:
    return lambda item: ItemVerdict.FAILED if item.label in failing else ItemVerdict.PASSED


def test_expected_failure_is_strict() -> None:
    label = "fuel/straight/counting"
    failed = ITEMS[label].run(Wrong(WRONG["raises"][0]))
    entry = check_expected({label: "not done yet"}, "XFAIL")[label]
    assert expect(failed, None).verdict is ItemVerdict.FAILED
    told = expect(failed, entry)
    assert (told.verdict, told.reason) == (ItemVerdict.XFAILED, "not done yet")
    assert entry.stale(_verdicts(label)) is None
    assert entry.stale(_verdicts()) == ITEMS[label]
    assert entry.complaint.verdict is ItemVerdict.FAILED
    assert entry.complaint.message.startswith("passes, but is expected to fail (not done yet)")


def test_entry_of_several_cases_is_stale_when_none_of_them_fails() -> None:
    table = check_expected({"fuel/straight": "why"}, "XFAIL")
    assert sorted(table) == [
        f"fuel/straight/{m}" for m in ("boundaries", "counting", "cuts", "moved")
    ]
    (entry,) = set(table.values())
    assert entry.stale(_verdicts("fuel/straight/moved")) is None
    assert entry.stale(_verdicts()) == entry.items[0]
    assert entry.stale(lambda _item: ItemVerdict.SKIPPED) is None
    assert entry.complaint.message.startswith("none of the 4 items of 'fuel/straight' fails, but")


def test_entry_of_the_fewest_cases_counts() -> None:
    stated = {"fuel/*": "all", "fuel/straight/cuts": "one", "fuel/straight": "four", "trap": "t"}
    table = check_expected(stated, "XFAIL")
    assert table["fuel/straight/cuts"].reason == "one"
    assert {table[f"fuel/straight/{m}"].reason for m in ("counting", "moved")} == {"four"}
    assert table["fuel/loop/cuts"].reason == "all"
    assert ITEMS["fuel/straight/cuts"] not in table["fuel/loop/cuts"].items
    assert {label.split("/")[0] for label in table} == {"fuel", "trap"}


def test_table_with_an_unknown_case_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"'fuel/lop/cuts'; did you mean 'fuel/loop/cuts'"):
        check_expected({"fuel/lop/cuts": "why"}, "XFAIL")
    with pytest.raises(UnknownNameError, match=r"'feul/\*'"):
        check_expected({"feul/*": "why"}, "XFAIL")
    with pytest.raises(FerryError, match="XFAIL: fuel/loop/cuts: a reason is needed"):
        check_expected({"fuel/loop/cuts": " "}, "XFAIL")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[xfail]\n"fuel/loop/cut" = "x"', "did you mean 'fuel/loop/cuts'"),
        ("[xfial]", r"exactly one table, \[xfail\], is expected"),
        ("[xfail", "Expected"),
        ("\xff", "utf-8"),
    ],
)
def test_unusable_table_is_one_line_with_the_file_s_name(
    text: str, message: str, tmp_path: Path
) -> None:
    file = tmp_path / "x.toml"
    file.write_text(text, encoding="latin-1")
    with pytest.raises(FerryError, match=message) as caught:
        read_expected(file)
    assert "x.toml" in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(FerryError, match="cannot be read: No such file"):
        read_expected(tmp_path / "none.toml")


# --- the cases themselves -------------------------------------------------------------------


def test_every_in_tree_backend_is_tested_by_the_suite_without_exceptions() -> None:
    tested: list[str] = []
    for file in sorted(Path(__file__).parent.glob("test_*.py")):
        text = file.read_text(encoding="utf-8")
        if "\nfrom ferryvm.testing.conformance import *\n" in text:
            stated = re.search(r"^BACKEND = (.*)$", text, re.MULTILINE)
            assert stated is not None, file
            tested += re.findall(r'"(\w+)"', stated.group(1))
            assert "XFAIL" not in text
    assert sorted(tested) == sorted(entry.name for entry in ferryvm_backends())


def test_every_instruction_has_items_and_labels_are_unique() -> None:
    labels = [item.label for item in items()]
    assert len(set(labels)) == len(labels)
    for row in INSTRUCTIONS:
        if row.has_references:  # the suite's runners know no objects yet
            continue
        assert {f"instruction/{row.mnemonic}/plain", f"instruction/{row.mnemonic}/counting"} <= set(
            labels
        )


def test_every_manner_is_used_and_documented() -> None:
    assert {manner for case in cases() for manner in case.manners} == set(MANNERS)
    readme = Path(case_module.__file__).parent / "cases" / "README.md"
    text = readme.read_text(encoding="utf-8")
    assert not [name for name in MANNERS if f"| `{name}` | " not in text]


def test_programs_that_are_entered_at_every_pc_have_every_pc_reached() -> None:
    reference = Wrong().real
    for case in cases():
        if case.group == "entry":
            program = case.program()
            way = walk(Task(case.label, program, case.limits, reference))
            reached = {state.pc for state in way.states}
            code = [pc for pc in range(len(program.program.code)) if program.is_reachable(pc)]
            missing = [pc for pc in code if pc not in reached]
            mnemonics = {INSTRUCTIONS[program.program.code.opcodes[pc]].mnemonic for pc in missing}
            assert mnemonics <= {"trap"}, case.label


def test_what_is_stated_by_hand_is_checked_against_the_reference() -> None:
    text = """
[[case]]
name = "sum"
about = "A sum"
manners = ["counting"]
program = ".function main\\n i64.const 1\\n i64.const 2\\n i64.add\\n halt"
end = { %s }
"""
    for end, complaint in {
        'operands = ["i64 3"], instructions = 3': None,
        'operands = ["i64 4"]': "operands",
        'operands = ["i32 3"]': "operands",
        "instructions = 4": "instructions 4 are stated, 3 found",
        'trap = "UNREACHABLE"': "status TRAP is stated, HALT found",
        'at = "nop"': "at 'nop' is stated",
        "depth = 2": "depth 2 is stated",
    }.items():
        (case,) = read("made", text % end)
        item = Item("made", "sum", "counting", "A sum", case)
        outcome = item.run(Wrong())
        if complaint is None:
            assert outcome.verdict is ItemVerdict.PASSED
        else:
            assert outcome.verdict is ItemVerdict.FAILED
            assert complaint in outcome.message
            assert outcome.message.endswith("by the reference backend itself")


def test_wrong_meaning_in_the_table_fails_against_what_is_stated_by_hand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It would be wrong on every backend in the same way."""
    monkeypatch.setattr(PythonArithmetic, "bit_xor", lambda _self, _type, a, b: a | b)
    for manner in ("plain", "counting"):
        outcome = ITEMS[f"instruction/i32.xor/{manner}"].run(Wrong())
        assert outcome.verdict is ItemVerdict.FAILED
        assert "integer_i32.txt:" in outcome.message
        assert outcome.message.endswith("by the reference backend itself")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("case = [{ nam = 1 }]", "no key 'nam'; did you mean 'name'"),
        ("about = 1\nmaners = []", "no key 'maners'; did you mean 'manners'"),
        ('manners = ["plan"]\n[[case]]\nname="x"\nabout=""\nprogram=""', "did you mean 'plain'"),
        ("x", "made.toml: "),
    ],
)
def test_case_file_with_a_fault_says_so(text: str, message: str) -> None:
    with pytest.raises(CaseError, match=message):
        list(read("made", text))


def test_case_whose_program_is_wrong_is_named() -> None:
    text = '[[case]]\nname="x"\nabout=""\nmanners=["plain"]\nprogram=".function main\\n drop"'
    (case,) = read("made", text)
    with pytest.raises(CaseError, match="case made/x: "):
        case.program()
