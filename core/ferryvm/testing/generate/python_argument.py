# SPDX-License-Identifier: Apache-2.0
"""Random arguments of Python functions, as texts: edge cases of numbers, arrays short and empty."""

from __future__ import annotations

from ferryvm.testing.generate.chance import Chance
from ferryvm.testing.generate.python_expression import (
    EDGES,
    FLOAT_EDGES,
    FLOATS,
    LISTS,
    item_type,
)

_BITS = {"int64": 64, "int32": 32, "int16": 16}


def argument(chance: Chance, of: str) -> str:
    """An argument of a type (see `python_expression`)."""
    match of:
        case "int":
            return _integer(chance)
        case "float":
            return chance.pick(FLOAT_EDGES)
        case "bool":
            return chance.pick(("True", "False"))
        case "number":
            return argument(chance, chance.pick(("int", "float")))
        case "pair":
            return f"({_integer(chance)}, {chance.pick(FLOAT_EDGES)})"
    if of in LISTS:
        values = [argument(chance, item_type(of)) for _ in range(chance.pick((0, 1, 2, 3, 5)))]
        return f"[{', '.join(values)}]"
    dtype, _, dimensions = of.partition("[")
    if not dimensions:
        return f"np.{dtype}({_element(chance, dtype)})"
    length = chance.pick((0, 1, 2, 3, 5, 8))
    name = "bool_" if dtype == "bool" else dtype
    if dimensions == "1]":
        items = ", ".join(_element(chance, dtype) for _ in range(length))
        return f"np.array([{items}], dtype=np.{name})"
    width = chance.pick((1, 2, 3))
    items = ", ".join(_element(chance, dtype) for _ in range(length * width))
    return f"np.array([{items}], dtype=np.{name}).reshape({length}, {width})"


def _integer(chance: Chance) -> str:
    if chance.flip(0.4):
        return str(chance.between(-4, 12))
    if chance.flip(0.2):
        return str(chance.bits(62))
    return chance.pick(EDGES)


def _element(chance: Chance, dtype: str) -> str:
    if dtype == "bool":
        return chance.pick(("True", "False"))
    if dtype in FLOATS:
        return chance.pick(FLOAT_EDGES[:11] + FLOAT_EDGES[11:14] if dtype == "float64" else _SINGLE)
    if chance.flip(0.5):
        return str(chance.between(0, 9))
    if dtype == "uint8":
        return str(chance.below(256))
    top = 1 << (_BITS[dtype] - 1)
    return str(chance.pick((top - 1, -top, -1, top >> 1)))


_SINGLE = ("0.0", "-0.0", "1.5", "-2.5", "3e38", "1e-45", "math.inf", "math.nan")
