# SPDX-License-Identifier: Apache-2.0
"""Random Python functions of the subset that `ferryvm.function` compiles, with arguments.

A text defines helpers and, last, `f`; calls of it are texts of arguments. All loops end: their trip
counts are bounded. Variables are used where each path has assigned them.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator

from ferryvm.testing.generate.chance import Chance
from ferryvm.testing.generate.python_argument import argument
from ferryvm.testing.generate.python_expression import (
    FLOATS,
    LISTS,
    Callee,
    PythonExpressions,
    is_array,
    item_type,
    table,
)
from ferryvm.testing.generate.python_match import cases, subject
from ferryvm.testing.generate.weights import Weights
from ferryvm.testing.generate.weights import default as default_weights

HEADER = "import math\n\nimport numpy as np\n\n\n"
"""The names that the functions use."""
_ERRORS = ("ValueError", "IndexError", "KeyError", "ZeroDivisionError", "OverflowError")
_CAUGHT = (
    *(f" {name}" for name in _ERRORS),
    *(" ArithmeticError", " LookupError", " (ValueError, IndexError)", " Exception", ""),
)
_NAMED = ("raise e", "raise ValueError(str(e)) from e", "raise ValueError(e.args)", "print(e)")
"""Statements of a clause that names its exception."""
_MOST_NESTING = 3
_CALLS = 4


@dataclasses.dataclass(frozen=True)
class PythonProgram:
    """A function `f` with its helpers, and arguments of calls."""

    text: str
    """Without HEADER."""
    calls: tuple[str, ...]
    """Each a tuple of arguments, written out."""

    def source(self) -> str:
        """The text as a module."""
        return HEADER + self.text


class FunctionWriter:
    """Writes one function."""

    def __init__(self, chance: Chance, weights: Weights, callees: list[Callee]) -> None:
        self.chance, self.weights = chance, weights
        self.write = PythonExpressions(chance, weights)
        self.write.callees = callees
        self._statements = table(weights.python_statement)
        self._types = table(weights.python_variable)
        self.lines: list[str] = []
        self.indent = 1
        self._next = 0
        self.result = "int"
        self._loops, self._nesting, self._budget = 0, 0, 0
        self._is_final = False

    # --- text -------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        """Add a line."""
        self.lines.append("    " * self.indent + text)

    def fresh(self, letter: str = "v") -> str:
        """A name that nothing has."""
        self._next += 1
        return f"{letter}{self._next}"

    @contextlib.contextmanager
    def _inside(self) -> Iterator[None]:
        """A block; variables that are new in it end with it."""
        before = dict(self.write.scope)
        self.indent += 1
        self._nesting += 1
        yield
        self._nesting -= 1
        self.indent -= 1
        self.write.scope = before

    @contextlib.contextmanager
    def _repeated(self) -> Iterator[None]:
        self._loops += 1
        yield
        self._loops -= 1

    def block(self, most: int = 4) -> None:
        """Statements inside of another one."""
        with self._inside():
            for _ in range(self.chance.between(1, most)):
                self.statement()

    # --- statements -------------------------------------------------------------------------

    def statement(self) -> None:
        """Any statement."""
        self._budget -= 1
        name = self.chance.weighted(self._statements)
        if name in _COMPOUND and (self._nesting >= _MOST_NESTING or self._budget < 0):
            name = "assign"
        getattr(self, f"_{name}")()

    def _assign(self) -> None:
        chance, write = self.chance, self.write
        loose = [name for name in write.scope if name.startswith("v")]
        if loose and chance.flip(0.6):
            name = chance.pick(loose)
            of = write.scope[name]
            if is_array(of) or of in LISTS:
                name = self.fresh()
        else:
            name, of = self.fresh(), chance.weighted(self._types)
        self.line(f"{name} = {write.value(of)}")
        write.scope[name] = of

    def _augment(self) -> None:
        chance, write = self.chance, self.write
        known = [name for name in write.names("int", "number") if name.startswith("v")]
        if not known:
            self._assign()
            return
        name = chance.pick(known)
        if write.scope[name] == "number":
            self.line(f"{name} {chance.pick('+-')}= {write.number(1)}")
            return
        operator = chance.pick(("+", "+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>"))
        value = write.integer(1)
        if operator in ("<<", ">>"):
            value = write.small()
        elif operator == "*":
            value = str(chance.pick((2, 3, -5, 1 << 30)))
        self.line(f"{name} {operator}= {value}")

    def _unpack(self) -> None:
        write = self.write
        pairs = write.names("pair")
        one, two = self.fresh(), self.fresh()
        if pairs and self.chance.flip(0.4):
            self.line(f"{one}, {two} = {self.chance.pick(pairs)}")
            write.scope |= {one: "int", two: "float"}
        elif self.chance.flip(0.5):
            self.line(f"{one}, {two} = divmod({write.integer(1)}, {write.integer(1)})")
            write.scope |= {one: "int", two: "int"}
        else:
            known = [name for name in write.names("int") if name.startswith("v")]
            if len(known) > 1:
                one, two = known[0], known[-1]
            self.line(f"{one}, {two} = {write.integer(1)}, {write.integer(1)}")
            write.scope |= {one: "int", two: "int"}

    def _store(self) -> None:
        chance, write = self.chance, self.write
        known = [name for name, of in write.scope.items() if is_array(of) or of in LISTS]
        if not known:
            self._assign()
            return
        name = chance.pick(known)
        of = item_type(write.scope[name])
        at = write.index(name)
        if is_array(of):
            at, of = f"{at}, {write.index(f'{name}[0]')}", of.partition("[")[0]
        if of in ("int", "float", "bool", "pair"):
            value = write.value(of)
        elif of in FLOATS:
            value = write.value(chance.pick((of, "float", "int", "number")))
        elif chance.flip(0.5):
            value = write.scalar(of, 1) if write.arrays(of) else write.integer(1)
        else:
            value = write.integer(1) if of == "int64" else f"({write.integer(1)} % 100)"
        operator = (
            "=" if of in ("bool", "pair") or chance.flip(0.7) else chance.pick(("+=", "-=", "*="))
        )
        if operator == "*=":
            value = "3"
        self.line(f"{name}[{at}] {operator} {value}")

    def _append(self) -> None:
        chance, write = self.chance, self.write
        known = write.names(*LISTS)
        if not known:
            self._assign()
            return
        name = chance.pick(known)
        if chance.flip(0.7):
            self.line(f"{name}.append({write.value(item_type(write.scope[name]), 1)})")
        else:
            target = self.fresh()
            self.line(f"{target} = {name}.pop()")
            write.scope[target] = item_type(write.scope[name])

    def _change(self) -> None:
        """Change a list, or look for something in it."""
        chance, write = self.chance, self.write
        known = write.names(*LISTS)
        if not known:
            self._assign()
            return
        name = chance.pick(known)
        of = write.scope[name]
        item = item_type(of)
        texts = [
            f"{name}.insert({write.index(name)}, {write.value(item, 1)})",
            f"{name}.extend({write.listed(of, 1)})",
            f"{name}.reverse()",
            f"del {name}[{write.index(name)}]",
            f"{name}[{write.integer(2)}:{write.integer(2)}] = {write.listed(of, 1)}",
            f"del {name}[{write.small()}:{write.small()}]",
            f"{name} += {write.listed(of, 1)}",
        ]
        if of != "pairs":
            texts += [f"{name}.sort()", f"{name}.sort(reverse={write.boolean(2)})"]
        if of == "ints":
            texts += [
                f"{name}.sort(key=lambda e: e % 3)",
                f"{name}.remove({write.integer(1)})",
                self._found(f"{name}.index({write.integer(1)})", "int"),
                self._found(f"{name}.count({write.integer(1)})", "int"),
            ]
        if chance.flip(0.15):
            texts = [self._found(f"{name}.pop({write.index(name)})", item)]
        self.line(chance.pick(texts))

    def _found(self, value: str, of: str) -> str:
        """The assignment of a value to a variable that is there."""
        known = self.write.names(of)
        loose = [name for name in known if name.startswith("v")]
        return f"{self.chance.pick(loose)} = {value}" if loose else value

    def _if(self) -> None:
        self.line(f"if {self.write.boolean(0)}:")
        self.block()
        if self.chance.flip(0.4):
            self.line("else:")
            self.block(2)

    def _match(self) -> None:
        of, type_ = subject(self.write, self.chance)
        self.line(f"match {of}:")
        self.indent += 1
        for case in cases(type_, self.chance, self.fresh):
            before = dict(self.write.scope)
            self.write.scope |= case.names
            needs_guard = not case.matches_all and self.chance.flip(0.2)
            guard = f" if {self.write.boolean(1)}" if needs_guard else ""
            self.line(f"case {case.pattern}{guard}:")
            self.block(2)
            self.write.scope = before
        self.indent -= 1

    def _while(self) -> None:
        count = self.fresh("n")
        self.line(f"{count} = {self.chance.between(1, 9)}")
        condition = f" and {self.write.boolean(1)}" if self.chance.flip(0.6) else ""
        self.line(f"while {count} > 0{condition}:")
        with self._repeated():
            self.indent += 1
            self.line(f"{count} -= 1")
            self.indent -= 1
            self.write.scope[count] = "int"
            self.block()
        self._otherwise()

    def _for(self) -> None:
        chance, write = self.chance, self.write
        iterable, of = self._iterable()
        target = self.fresh("i")
        targets = {target: of}
        if chance.flip(0.2):
            number = self.fresh("i")
            start = f", {write.integer(2)}" if chance.flip(0.3) else ""
            iterable, targets = f"enumerate({iterable}{start})", {number: "int", target: of}
        elif chance.flip(0.2):
            (other, of), two = self._iterable(), self.fresh("i")
            iterable, targets[two] = f"zip({iterable}, {other})", of
        self.line(f"for {', '.join(targets)} in {iterable}:")
        with self._repeated():
            before = dict(write.scope)
            write.scope |= targets
            self.block()
            write.scope = before
        self._otherwise()

    def _iterable(self) -> tuple[str, str]:
        chance, write = self.chance, self.write
        known = [n for n, of in write.scope.items() if is_array(of) or of in LISTS]
        if known and chance.flip(0.45):
            name = chance.pick(known)
            of = write.scope[name]
            if of in LISTS:  # a list that grows in its loop has no end
                return f"{name}[:9]", item_type(of)
            if chance.flip(0.6):
                return name, item_type(of)
            return f"{name}[{write.slice()}]", item_type(of)
        if chance.flip(0.15):
            items = [write.integer(2) for _ in range(chance.between(1, 3))]
            return f"({', '.join(items)},)", "int"
        if chance.flip(0.2):
            first = chance.pick(("2**63 - 4", "2**62", "-2**63", "-3"))
            return f"range({first}, {first} + {write.small()})", "int"
        if chance.flip(0.3):
            step = chance.pick((-1, 2, -2, 3))
            ends = f"{write.small()}, {write.small()}"
            return f"range({ends}, {step})", "int"
        return f"range({write.small()})", "int"

    def _otherwise(self) -> None:
        if self.chance.flip(0.12):
            self.line("else:")
            self.block(2)

    def _leave(self) -> None:
        if not self._loops or self._is_final:
            self._assign()
            return
        with self._guarded():
            self.line(self.chance.pick(("break", "continue")))

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        self.line(f"if {self.write.boolean(1)}:")
        self.indent += 1
        yield
        self.indent -= 1

    def _return(self) -> None:
        if self._is_final:
            self._assign()
            return
        with self._guarded():
            self.line(f"return {self.write.value(self.result, 1)}")

    def _raise(self) -> None:
        chance, write = self.chance, self.write
        with self._guarded():
            leaf = write.integer_leaf()
            arguments = (
                "",
                "('stop')",
                f"(f'at {{{leaf}}}')",
                f"('stop', {leaf})",
                "('one', 'two')",
            )
            cause = chance.pick(("", "", " from None", " from KeyError('k')"))
            self.line(f"raise {chance.pick(_ERRORS)}{chance.pick(arguments)}{cause}")

    def _assert(self) -> None:
        self.line(f"assert {self.write.boolean(0)}, 'asserted'")

    def _try(self) -> None:
        chance = self.chance
        self.line("try:")
        self.block()
        is_caught = chance.flip(0.75)
        if is_caught:
            for _ in range(chance.between(1, 2)):
                clause = chance.pick(_CAUGHT)
                name = " as e" if clause and chance.flip(0.3) else ""
                self.line(f"except{clause}{name}:")
                self.block(2)
                if chance.flip(0.25):
                    again = (
                        ("raise", "raise", *_NAMED) if name else ("raise", "raise KeyError('k')")
                    )
                    self.indent += 1
                    self.line(chance.pick(again))
                    self.indent -= 1
                if not clause:
                    break
            if chance.flip(0.25):
                self.line("else:")
                self.block(2)
        if not is_caught or chance.flip(0.35):
            self.line("finally:")
            was, self._is_final = self._is_final, True
            self.block(2)
            self._is_final = was

    # --- functions --------------------------------------------------------------------------

    def body(self, most: int) -> None:
        """The statements of a function."""
        self._budget = most
        for _ in range(self.chance.between(2, most)):
            self.statement()

    def inner(self) -> None:
        """A function in the function, which uses its variables."""
        other = FunctionWriter(self.chance, self.weights, list(self.write.callees))
        name, parameter = self.fresh("g"), self.fresh("p")
        # It assigns no variable of this function, which would be another one in it.
        outer = {each: of for each, of in self.write.scope.items() if not each.startswith("v")}
        other.write.scope = {**outer, parameter: "int"}
        other.write.bounded = self.write.bounded
        other._next, other.indent, other._nesting = self._next, self.indent + 1, 1
        self.line(f"def {name}({parameter}):")
        other.body(3)
        other.line(f"return {other.write.integer(0)}")
        self.lines += other.lines
        self._next = other._next
        self.write.callees = [*self.write.callees, Callee(name, ("int",), "int")]

    def passed(self) -> None:
        """A lambda that a helper calls twice, which uses variables of this function; or a function
        that assigns one of them."""
        scope, parameter, value = self.write.scope, self.fresh("p"), self.write.integer(1)
        numbers = self.write.names("int")
        if numbers and self.chance.flip(0.5):
            name, assigned = self.fresh("g"), self.chance.pick(numbers)
            self.line(f"def {name}({parameter}):")
            self.line(f"    nonlocal {assigned}")
            self.line(f"    {assigned} = ({parameter} + {assigned}) % 7")
            self.line(f"    return {parameter} - {assigned}")
            call = f"{name}({value}) + {name}({assigned})"
        else:
            self.write.scope = {**scope, parameter: "int"}
            call = f"{TWICE}(lambda {parameter}: {self.write.integer(1)}, {value})"
            self.write.scope = scope
        result = self.fresh("v")
        self.line(f"{result} = {call}")
        self.write.scope[result] = "int"


TWICE = "twice"
"""The name of a function that applies another one to its own value."""

_COMPOUND = ("if", "match", "while", "for", "try")


def _helper(chance: Chance, weights: Weights, number: int, callees: list[Callee]) -> list[str]:
    of = FunctionWriter(chance, weights, list(callees))
    of.result = chance.pick(("int", "int", "float"))
    is_recursive = chance.flip(weights.chance["python_recursion"])
    parameters = {"a": "int", "b": chance.pick(("int", "float", of.result))}
    of.write.scope = dict(parameters)
    name = f"h{number}"
    callee = Callee(name, tuple(parameters.values()), of.result, is_recursive)
    if is_recursive:
        of.line("if a <= 0:")
        of.line(f"    return {of.write.value(of.result, 1)}")
    of.body(4)
    value = of.write.value(of.result, 1)
    if is_recursive:
        value = f"{name}(a - 1, {of.write.value(parameters['b'], 1)}) + {value}"
    of.line(f"return {value}")
    callees.append(callee)
    return [f"def {name}({', '.join(parameters)}):", *of.lines, "", ""]


def helpers(chance: Chance, weights: Weights) -> tuple[list[str], list[Callee]]:
    """Lines of functions that others may call."""
    callees: list[Callee] = []
    lines: list[str] = []
    for number in range(chance.weighted(weights.numbers("python_helpers"))):
        lines += _helper(chance, weights, number, callees)
    return lines, callees


def write(chance: Chance, weights: Weights | None = None) -> PythonProgram:
    """A random program."""
    weights = default_weights() if weights is None else weights
    lines, callees = helpers(chance, weights)
    of = FunctionWriter(chance, weights, callees)
    kinds = table(weights.python_parameter)
    parameters = {"abcd"[number]: chance.weighted(kinds) for number in range(chance.between(1, 4))}
    of.write.scope = dict(parameters)
    of.write.bounded = tuple(of.write.names("int"))
    of.result = chance.pick(("int", "float", "number", "pair"))
    if chance.flip(weights.chance["python_inner"]):
        of.inner()
    if chance.flip(weights.chance["python_passed"]):
        of.passed()
    of.body(9)
    shown = [
        name for name, kind in of.write.scope.items() if kind not in LISTS and not is_array(kind)
    ]
    if shown and chance.flip(0.7):
        of.line(f"return ({', '.join(shown[-4:])},)")
    else:
        lists = of.write.names(*LISTS)
        last = chance.pick(lists) if lists else of.write.value(of.result)
        of.line(f"return {last}")
    if any(f"{TWICE}(" in line for line in of.lines):
        lines += [f"def {TWICE}(f, x):", "    return f(f(x))", "", ""]
    lines += [f"def f({', '.join(parameters)}):", *of.lines]
    calls = []
    for _ in range(_CALLS):
        values = [argument(chance, kind) for kind in parameters.values()]
        calls.append(f"({', '.join(values)},)")
    return PythonProgram("\n".join(lines) + "\n", tuple(dict.fromkeys(calls)))
