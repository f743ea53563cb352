# SPDX-License-Identifier: Apache-2.0
"""Random expressions of Python functions, typed so that most of them can be compiled.

A type is a name: `int`, `float`, `bool`, `number` (an int or a float), a dtype of NumPy for a
scalar, `float64[2]` for an array of two dimensions, `ints`, `floats`, `pairs` and `numbers` for
lists, `pair` for a tuple of an int and a float. Integers grow by a bounded number of bits an
iteration, so that CPython, which goes on where 64 bits end, ends in time.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ferryvm.testing.generate.chance import Chance, Weighted
from ferryvm.testing.generate.weights import Section, Weights

INTEGERS = ("int64", "int32", "int16", "uint8")
FLOATS = ("float64", "float32")
EDGES = (
    *("0", "1", "-1", "2", "3", "-7", "10", "63", "64", "255", "1000", "2**31 - 1", "2**31"),
    *("-2**31", "2**32", "2**53 + 1", "2**62", "2**62 - 1", "-2**62", "2**63 - 1", "-2**63"),
    *("-2**63 + 1", "2**63 - 2", "3037000500", "3 * 2**61"),
)
FLOAT_EDGES = (
    *("0.0", "-0.0", "1.0", "-1.0", "0.5", "-1.5", "2.5", "3.7", "1e300", "-1e300", "5e-324"),
    *("math.inf", "-math.inf", "math.nan", "2.0**53", "2.0**62", "2.0**63", "-(2.0**63)", "1e16"),
)
_MOST_DEPTH = 3


@dataclasses.dataclass(frozen=True)
class Callee:
    """A function that expressions may call."""

    name: str
    parameters: tuple[str, ...]
    """Their types; the first one of a recursive function counts the calls."""
    result: str
    is_recursive: bool = False


LISTS = ("ints", "floats", "pairs", "numbers")
"""The types of lists."""


def table(section: Section) -> Weighted[str]:
    """The keys of a section, to be drawn by weight."""
    return Weighted(section.items())


def item_type(of: str) -> str:
    """The type of the items of a list or an array."""
    if of in LISTS:
        return of[:-1]
    dtype, _, rest = of.partition("[")
    return dtype if rest == "1]" else f"{dtype}[1]"


def is_array(of: str) -> bool:
    """True for the type of an array."""
    return of.endswith("]")


class PythonExpressions:
    """Writes expressions over the variables in scope."""

    def __init__(self, chance: Chance, weights: Weights) -> None:
        self.chance = chance
        self.scope: dict[str, str] = {}
        """Types of the variables that have a value, by name."""
        self.callees: list[Callee] = []
        self.bounded: tuple[str, ...] = ()
        """Variables with ints of 64 bits, by which anything may be multiplied."""
        self._integer, self._float = table(weights.python_int), table(weights.python_float)
        self._bool, self._scalar = table(weights.python_bool), table(weights.python_scalar)

    # --- variables --------------------------------------------------------------------------

    def names(self, *types: str) -> list[str]:
        """The variables of some types."""
        return [name for name, of in self.scope.items() if of in types]

    def arrays(self, *dtypes: str) -> list[str]:
        """The arrays of one dimension of some dtypes."""
        return self.names(*(f"{dtype}[1]" for dtype in dtypes))

    def value(self, of: str, depth: int = 0) -> str:
        """An expression of a type."""
        chance = self.chance
        match of:
            case "int":
                return self.integer(depth)
            case "float":
                return self.real(depth)
            case "bool":
                return self.boolean(depth)
            case "number":
                known = self.names("number")
                if known and chance.flip(0.4):
                    name = chance.pick(known)
                    if depth >= _MOST_DEPTH or chance.flip(0.5):
                        return name
                    return f"({name} {chance.pick('+-')} {self.number(depth + 1)})"
                return self.number(depth)
            case "pair":
                known = self.names("pair")
                if known and chance.flip(0.4):
                    return chance.pick(known)
                return f"({self.integer(depth + 1)}, {self.real(depth + 1)})"
            case "ints" | "floats" | "pairs" | "numbers":
                return self.listed(of, depth)
        return self.array(of, depth) if is_array(of) else self.scalar(of, depth)

    def number(self, depth: int) -> str:
        """An int or a float."""
        return self.integer(depth) if self.chance.flip(0.5) else self.real(depth)

    # --- integers ---------------------------------------------------------------------------

    def integer_leaf(self) -> str:
        """A variable or a literal."""
        known = self.names("int")
        if known and self.chance.flip(0.75):
            return self.chance.pick(known)
        if self.chance.flip(0.5):
            return str(self.chance.between(-3, 9))
        return f"({self.chance.pick(EDGES)})"

    def small(self, depth: int = _MOST_DEPTH) -> str:
        """An int from 0 to 7."""
        return f"({self.integer(depth)} & {self.chance.pick((1, 3, 7))})"

    def index(self, of: str, depth: int = _MOST_DEPTH) -> str:
        """An index of something with a length; it may be out of bounds."""
        chance = self.chance
        if chance.flip(0.65):
            return f"{self.integer(depth)} % len({of})"
        if chance.flip(0.6):
            return str(chance.between(-3, 4))
        return self.integer(depth)

    def integer(self, depth: int) -> str:
        """An int, or a bool that is used as one."""
        chance = self.chance
        if depth >= _MOST_DEPTH:
            return self.integer_leaf()
        below = depth + 1
        match chance.weighted(self._integer):
            case "sum":
                return f"({self.integer(below)} {chance.pick('+-')} {self.integer(below)})"
            case "product":
                if self.bounded and chance.flip(0.5):
                    return f"({chance.pick(self.bounded)} * {self.integer(below)})"
                return f"({self.integer(below)} * {self._factor(below)})"
            case "division":
                by = self.integer(below)
                if chance.flip(0.4):
                    by = chance.pick(("2", "3", "-3", "7", "-1", "10"))
                return f"({self.integer(below)} {chance.pick(('//', '%'))} {by})"
            case "bits":
                return f"({self.integer(below)} {chance.pick('&|^')} {self.integer(below)})"
            case "shift":
                by = self.small(below) if chance.flip(0.8) else f"({self.integer(below)} & 63)"
                return f"({self.integer(below)} {chance.pick(('<<', '>>'))} {by})"
            case "unary":
                return f"({chance.pick('-~+')}{self.integer(below)})"
            case "abs":
                return f"abs({self.integer(below)})"
            case "extreme":
                name = chance.pick(("min", "max"))
                return f"{name}({self.integer(below)}, {self.integer(below)})"
            case "power":
                base = f"({self.integer(below)} % 9)"
                if self.bounded and chance.flip(0.6):
                    base = chance.pick(self.bounded)
                return f"({base} ** {chance.pick(('2', '3', self.small(below)))})"
            case "conditional":
                parts = self.integer(below), self.boolean(below), self.integer(below)
                return "({} if {} else {})".format(*parts)
            case "select":
                word = chance.pick(("and", "or"))
                return f"({self.integer(below)} {word} {self.integer(below)})"
            case "bool":
                return f"({self.boolean(below)} + {self.integer(below)})"
            case "library":
                form = chance.pick(_INTEGER_FORMS)
                return form.format(self.integer(below), self.integer(below))
            case "convert":
                name = chance.pick(("int", "round", "math.floor", "math.ceil", "math.trunc"))
                return f"{name}({self.real(below)})"
            case "scalar":
                known = self.arrays(*INTEGERS) + self.names(*INTEGERS)
                if known:
                    return f"int({self._value_of(known, below)})"
            case "item":
                known = self.names("ints", "pair")
                if known:
                    return self._item_of(known, "0", below)
            case "length":
                known = [name for name, of in self.scope.items() if of in _LENGTHY or is_array(of)]
                if known:
                    return f"len({chance.pick(known)})"
            case "call":
                found = self.call("int", below)
                if found:
                    return found
            case "walrus":
                known = self.names("int")
                loose = [name for name in known if name.startswith("v")]
                if loose:
                    return f"({chance.pick(loose)} := {self.integer(below)})"
        return self.integer_leaf()

    def _value_of(self, known: Sequence[str], depth: int) -> str:
        """One of these variables, or an element of it if it is an array."""
        name = self.chance.pick(known)
        return f"{name}[{self.index(name, depth)}]" if is_array(self.scope[name]) else name

    def _item_of(self, known: Sequence[str], place: str, depth: int) -> str:
        """An item of one of these lists and pairs; `place`: that of a pair."""
        name = self.chance.pick(known)
        at = place if self.scope[name] == "pair" else self.index(name, depth)
        return f"{name}[{at}]"

    def _factor(self, depth: int) -> str:
        if self.chance.flip(0.6):
            return str(self.chance.pick((2, 3, -3, 5, 10, 1 << 20)))
        return f"({self.integer(depth)} % {self.chance.pick((3, 10, 1009))})"

    # --- floats, bools ----------------------------------------------------------------------

    def float_leaf(self) -> str:
        """A variable or a literal."""
        known = self.names("float")
        if known and self.chance.flip(0.75):
            return self.chance.pick(known)
        return f"({self.chance.pick(FLOAT_EDGES)})"

    def real(self, depth: int) -> str:
        """A float."""
        chance = self.chance
        if depth >= _MOST_DEPTH:
            return self.float_leaf()
        below = depth + 1
        match chance.weighted(self._float):
            case "sum":
                return f"({self.real(below)} {chance.pick('+-*')} {self.real(below)})"
            case "mixed":
                parts = [self.real(below), self.integer(below)]
                if chance.flip(0.5):
                    parts.reverse()
                return f"({parts[0]} {chance.pick('+-*/')} {parts[1]})"
            case "quotient":
                return f"({self.real(below)} / {self.real(below)})"
            case "integers":
                return f"({self.integer(below)} / {self.integer(below)})"
            case "unary":
                return f"(-{self.real(below)})"
            case "abs":
                return f"{chance.pick(('abs', 'math.fabs'))}({self.real(below)})"
            case "sqrt":
                return f"math.sqrt({self.real(below)})"
            case "copysign":
                sign = chance.pick(("0.0", "-0.0", f"float({self.integer_leaf()})"))  # no NaN's
                return f"math.copysign({self.real(below)}, {sign})"
            case "extreme":
                name = chance.pick(("min", "max"))
                return f"{name}({self.real(below)}, {self.real(below)})"
            case "conditional":
                parts = [self.real(below), self.boolean(below), self.real(below)]
                return "({} if {} else {})".format(*parts)
            case "library":
                form = chance.pick(_FLOAT_FORMS)
                return form.format(self.real(below), self.real(below), self.small())
            case "complex":
                number = f"complex({self.real(below)}, {self.integer_leaf()})"
                operator, part = chance.pick("+-*/"), chance.pick(("real", "imag"))
                return f"({number} {operator} {self.real(below)}).{part}"
            case "convert":
                return f"float({self.integer(below)})"
            case "scalar":
                known = self.arrays(*FLOATS) + self.names(*FLOATS)
                if known:
                    return f"float({self._value_of(known, below)})"
            case "item":
                known = self.names("floats", "pair")
                if known:
                    return self._item_of(known, "1", below)
            case "call":
                found = self.call("float", below)
                if found:
                    return found
        return self.float_leaf()

    def boolean(self, depth: int) -> str:
        """A bool."""
        chance = self.chance
        below = depth + 1
        if depth < _MOST_DEPTH:
            match chance.weighted(self._bool):
                case "chain":
                    one, two, three = (self.integer(below) for _ in range(3))
                    return f"({one} {self._relation()} {two} {self._relation()} {three})"
                case "both":
                    word = chance.pick(("and", "or"))
                    return f"({self.boolean(below)} {word} {self.boolean(below)})"
                case "not":
                    return f"(not {self.boolean(below)})"
                case "class":
                    name = chance.pick(("isnan", "isinf", "isfinite"))
                    return f"math.{name}({self.real(below)})"
                case "float":
                    return f"({self.real(below)} {self._relation()} {self.real(below)})"
                case "mixed":
                    return f"({self.integer(below)} {self._relation()} {self.real(below)})"
                case "convert":
                    return f"bool({self.number(below)})"
                case "list":
                    known = self.names("ints")
                    if known and chance.flip(0.5):
                        return f"({self.integer(below)} in {chance.pick(known)})"
                    if known:
                        return f"({chance.pick(known)} {self._relation()} {chance.pick(known)})"
                case "variable":
                    known = self.names("bool")
                    if known:
                        return chance.pick(known)
        return f"({self.integer(below)} {self._relation()} {self.integer(below)})"

    def _relation(self) -> str:
        return self.chance.pick(("<", "<=", ">", ">=", "==", "!="))

    # --- NumPy, lists, calls ----------------------------------------------------------------

    def scalar(self, dtype: str, depth: int) -> str:
        """A NumPy scalar."""
        chance = self.chance
        known = self.arrays(dtype) + self.names(dtype)
        if not known:
            inner = "bool" if dtype == "bool" else "float" if dtype in FLOATS else "int"
            if dtype in ("float64", "float32"):
                return f"np.{dtype}({self.value(inner, depth + 1)})"
            if dtype in ("int64", "int32"):
                return f"np.{dtype}({self.integer(depth + 1)} % 1000)"
            raise AssertionError(f"no {dtype} in scope")
        name = chance.pick(known)
        leaf = f"{name}[{self.index(name, depth + 1)}]" if is_array(self.scope[name]) else name
        if depth >= _MOST_DEPTH or dtype == "bool":
            return leaf
        match chance.weighted(self._scalar):
            case "same":
                operators = ("+", "-", "*", "/") if dtype in FLOATS else ("+", "-", "*", "//", "%")
                return f"({leaf} {chance.pick(operators)} {self.scalar(dtype, depth + 1)})"
            case "number":
                other = str(chance.between(1, 5)) if dtype not in FLOATS else self.real(depth + 1)
                return f"({leaf} {chance.pick('+-*')} {other})"
            case "reversed":
                other = str(chance.between(1, 5)) if dtype not in FLOATS else self.real(depth + 1)
                return f"({other} {chance.pick('+-*')} {leaf})"
            case "bits" if dtype in INTEGERS:
                return f"({leaf} {chance.pick('&|^')} {self.scalar(dtype, depth + 1)})"
            case "unary":
                return f"(-{leaf})"
        return leaf

    def listed(self, of: str, depth: int) -> str:
        """A list, which nothing else refers to."""
        item = item_type(of)
        chance = self.chance
        known = self.names(of)
        if known and chance.flip(0.4):
            name = chance.pick(known)
            parts = [f"{name}[{self.slice()}]", f"{name}.copy()", f"{name} + {name}[:2]"]
            if of != "pairs":  # NaNs in tuples have no order
                parts.append(f"sorted({name}, reverse={self.boolean(_MOST_DEPTH)})")
            return chance.pick(parts)
        if chance.flip(0.08):
            return "[]"
        if chance.flip(0.4):
            return f"[{self.value(item, depth + 1)}] * {self.small()}"
        if chance.flip(0.4):
            self.scope["c"] = "int"
            text = self.value(item, depth + 1)
            del self.scope["c"]
            text = text.replace(":=", "+")  # no assignment in a comprehension
            return f"[{text} for c in range({self.small()})]"
        return f"[{', '.join(self.value(item, depth + 1) for _ in range(chance.between(1, 4)))}]"

    def array(self, of: str, depth: int) -> str:
        """An array or a view."""
        chance = self.chance
        dtype, _, rest = of.partition("[")
        known = self.names(of)
        rows = self.names(f"{dtype}[2]") if rest == "1]" else []
        if rows and (not known or chance.flip(0.4)):
            name = chance.pick(rows)
            if chance.flip(0.4):
                return f"{name}[:, {self.integer(_MOST_DEPTH)} % {name}.shape[1]]"
            return f"{name}[{self.index(name)}]"
        if not known:
            shape = self.small() if rest == "1]" else f"({self.small()}, 2)"
            return f"np.zeros({shape}, dtype=np.{dtype if dtype != 'bool' else 'bool_'})"
        name = chance.pick(known)
        return f"{name}[{self.slice()}]" if chance.flip(0.8) else name

    def slice(self) -> str:
        """A slice of any bounds, with a step that is written out."""
        chance = self.chance
        low = "" if chance.flip(0.3) else self.integer(_MOST_DEPTH)
        high = "" if chance.flip(0.3) else self.integer(_MOST_DEPTH)
        step = f":{chance.pick((2, -1, 1, -2, 3))}" if chance.flip(0.4) else ""
        return f"{low}:{high}{step}"

    def call(self, result: str, depth: int) -> str | None:
        """A call with a result of a type; None if there is no such function."""
        known = [each for each in self.callees if each.result == result]
        if not known:
            return None
        callee = self.chance.pick(known)
        arguments = [self.value(of, depth + 1) for of in callee.parameters]
        if callee.is_recursive:
            arguments[0] = self.small()
        return f"{callee.name}({', '.join(arguments)})"


_INTEGER_FORMS = (
    "({}).bit_length()",
    "({}).bit_count()",
    "round({}, -({} & 3))",
    "math.gcd({}, {})",
    "len(range({}, {}, 7))",
    "max(({}), {}, key=lambda k: -k)",
    "(1 if isinstance({}, int) else {})",
)
"""Functions of two integers."""
_FLOAT_FORMS = (
    "round({0}, {2})",
    "math.fmod({0}, {1})",
    "math.remainder({0}, {1})",
    "math.fsum(({0}, {1}, 0.1))",
    "math.ldexp({0}, {2} - 3)",
    "math.nextafter({0}, {1})",
    "float(({0}).is_integer())",
)
"""Functions of two floats and a small integer."""
_LENGTHY = (*LISTS, "pair")
