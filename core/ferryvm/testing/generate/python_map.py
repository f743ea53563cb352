# SPDX-License-Identifier: Apache-2.0
"""Random maps, reductions and scans of Python functions, with arguments of every form.

A text defines helpers and, last, `f`. A call is a tuple with an argument for each parameter of it:
`Each(...)` for one whose elements are taken, anything else for one that all items share; or one
`Folded(...)` for a reduction or a scan. `ferryvm.testing.map_check` has both.
"""

from __future__ import annotations

from ferryvm.testing.generate.chance import Chance
from ferryvm.testing.generate.python import FunctionWriter, PythonProgram, helpers
from ferryvm.testing.generate.python_argument import argument
from ferryvm.testing.generate.python_expression import FLOATS, INTEGERS, is_array
from ferryvm.testing.generate.weights import Weights
from ferryvm.testing.generate.weights import default as default_weights

_SIZES = (0, 1, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64)
_LARGE = (127, 128, 129, 255, 256, 257)
_BLOCKS = (*_LARGE, 1023, 1024, 1025, 2050)
"""Sizes about those of the blocks of reductions and scans."""
_CALLS = 5
_OF_ELEMENTS = {
    "int": ("range", "list", "objects"),
    "float": ("list", "objects"),
    "bool": ("list",),
    "pair": ("tuple",),
}
"""Forms of arguments whose elements are no scalars of NumPy."""
_ELEMENTS = (
    *("int", "int", "float", "bool", "pair", "int64", "int64", "float64", "float64"),
    *("float32", "int32", "int16", "uint8"),
)
_MASKED = (0.0, 0.3, 0.9)
"""Shares of the arrays of a call that are masked ones: results get the union of their masks."""
_ASSOCIATIVE = {
    "int": ("a + b", "a * b", "max(a, b)", "min(a, b)", "a ^ b", "a & b", "a | b"),
    "float": ("max(a, b)", "min(a, b)"),
    "int64": ("a + b", "a * b", "max(a, b)", "a ^ b"),
    "float64": ("b if a < b else a",),
}


def write(chance: Chance, weights: Weights | None = None) -> PythonProgram:
    """A random program."""
    weights = default_weights() if weights is None else weights
    return _folded(chance, weights) if chance.flip(0.3) else _mapped(chance, weights)


def _mapped(chance: Chance, weights: Weights) -> PythonProgram:
    lines, callees = helpers(chance, weights)
    of = FunctionWriter(chance, weights, callees)
    elements = {name: chance.pick(_ELEMENTS) for name in "abc"[: chance.between(1, 3)]}
    shared = {name: chance.pick(("int", "float")) for name in "ks"[: chance.below(3)]}
    of.write.scope = {**elements, **shared}
    for name, type_ in elements.items():
        if type_ in (*INTEGERS, *FLOATS):
            plain = "float" if type_ in FLOATS else "int"
            of.line(f"i{name} = {plain}({name})")
            of.write.scope[f"i{name}"] = plain
    of.write.bounded = tuple(of.write.names("int"))
    of.body(6)
    known = of.write.scope
    numbers = [name for name, type_ in known.items() if _is_number(type_)]
    shown = [chance.pick(numbers) for _ in range(chance.pick((1, 1, 2, 3)))] if numbers else []
    if len(shown) > 1:
        of.line(f"return {', '.join(shown)}")
    else:
        of.line(f"return {shown[0] if shown else of.write.integer(0)}")
    lines += [f"def f({', '.join((*elements, *shared))}):", *of.lines]
    calls = []
    for number in range(_CALLS):
        size = chance.pick(_LARGE if number == _CALLS - 1 and chance.flip(0.5) else _SIZES)
        is_flat = size % 2 or chance.flip(0.7) or not all(map(_is_scalar, elements.values()))
        masked = chance.pick(_MASKED)
        values = [f"Each({_elements(chance, type_, size, masked)})" for type_ in elements.values()]
        if not is_flat:
            values = [f"{each[:-1]}.reshape(-1, 2))" for each in values]
        if len(values) > 1 and chance.flip(0.2):  # a number for all items
            place = chance.below(len(values) - 1) + 1
            type_ = [*elements.values()][place]
            if type_ in ("int", "float", "bool"):
                values[place] = f"Each({argument(chance, type_)})"
        values += [argument(chance, type_) for type_ in shared.values()]
        calls.append(f"({', '.join(values)},)")
    return PythonProgram("\n".join(lines) + "\n", tuple(dict.fromkeys(calls)))


def _folded(chance: Chance, weights: Weights) -> PythonProgram:
    """A reduction or a scan; of more elements than a block has only by associative functions."""
    lines: list[str] = []
    is_large = chance.flip(0.4)
    type_ = chance.pick(tuple(_ASSOCIATIVE)) if is_large else chance.pick(("int", "int64", "float"))
    if is_large:
        lines += ["def f(a, b):", f"    return {chance.pick(_ASSOCIATIVE[type_])}"]
    else:
        lines, callees = helpers(chance, weights)
        of = FunctionWriter(chance, weights, callees)
        of.write.scope = {"a": type_, "b": type_}
        of.body(3)
        lines += ["def f(a, b):", *of.lines, f"    return {of.write.value(type_)}"]
    calls = []
    for _ in range(_CALLS):
        size = chance.pick(_BLOCKS if is_large else _SIZES)
        form = chance.pick(("reduce", "reduce", "scan", "scan into"))
        value = _elements(chance, type_, size)
        has_initial = form == "reduce" and (is_large or size < 2) and chance.flip(0.4)
        initial = f", {argument(chance, type_)}" if has_initial else ""
        calls.append(f'(Folded("{form}", {value}{initial}),)')
    return PythonProgram("\n".join(lines) + "\n", tuple(dict.fromkeys(calls)))


def _is_number(type_: str) -> bool:
    return not is_array(type_) and type_ not in ("pair", "ints", "floats", "pairs", "numbers")


def _is_scalar(type_: str) -> bool:
    return type_ not in _OF_ELEMENTS


def _elements(chance: Chance, type_: str, size: int, masked: float = 0.3) -> str:
    """An argument with so many elements, most of which are ordinary: a branch that only the last
    ones take is one that was not seen before. `masked`: the share of arrays that are masked."""
    if type_ == "pair":
        ints = _elements(chance, "int", size)
        other = chance.pick(("float", "float64"))
        return f"({ints}, {_elements(chance, other, size, masked)})"
    if type_ not in _OF_ELEMENTS:
        return _array(chance, type_, size, masked)
    form = chance.pick(_OF_ELEMENTS[type_])
    if form == "range":
        first = chance.pick(("0", "0", "-5", "2**62 - 3", "-2**63"))
        step = chance.pick((1, 1, 2, 7))
        return f"range({first}, {first} + {size * step}, {step})"
    if form == "objects" and size:
        return f"np.array({_listed(chance, type_, size)}, dtype=object)"
    return _listed(chance, type_, size)


def _array(chance: Chance, dtype: str, size: int, masked: float) -> str:
    one = argument(chance, f"{dtype}[1]") if size < 9 else ""
    text = f"np.resize(np.array({_scalars(chance, dtype, size)}, dtype=np.{dtype}), {size})"
    if one and chance.flip(0.3):
        text = f"np.resize(np.concatenate([{one}, np.ones(1, np.{dtype})]), {size})"
    if chance.flip(masked) and size:
        of = chance.between(2, 5)
        some = f"[n % {of} == {chance.below(of)} for n in range({size})]"
        return f"np.ma.array({text}, mask={chance.pick((some, some, some, some, 'False', 'True'))})"
    return text


def _scalars(chance: Chance, dtype: str, size: int) -> str:
    items = [str(chance.between(0, 7)) for _ in range(chance.between(1, 4))]
    edge = argument(chance, "float" if dtype == "float64" else "bool")
    if dtype.startswith("int64"):
        edge = argument(chance, "int")
    return f"[{', '.join(items)}] * {max(size // len(items) - 1, 1)} + [{edge}]"


def _listed(chance: Chance, type_: str, size: int) -> str:
    """A list; the last item is an edge case of its type."""
    if not size:
        return "[]"
    plain = {"int": "3", "float": "1.5", "bool": "True"}[type_]
    edge = argument(chance, type_)
    return f"[{plain}, {argument(chance, type_)}, {plain}, {plain}] * {size // 4} + " + (
        f"[{', '.join([edge] * (size % 4))}]"
    )
