# SPDX-License-Identifier: Apache-2.0
"""The number of lanes in which native code runs the items of a launch."""

from __future__ import annotations

from ferryvm.backend import Options
from ferryvm.ir.function_body import function_body
from ferryvm.ir.graph import Body, Boolean
from ferryvm.isa.pure_function import PureFunction
from ferryvm.isa.type import F32, F64, I64
from ferryvm_backends._llvm.codegen import host_processor

_BITS = {"+avx512f": 512, "+avx2": 256}
"""Bits of vector registers, by a feature of the processor that has masked loads and stores."""

_VECTORS = 2
"""Vectors of the widest elements that are computed side by side: that hides latency."""


def vector_bits() -> int:
    """Bits of the processor's vectors with masked loads and stores; 0 if it has none, and lanes
    would load and store one after another."""
    features = host_processor()[1].split(",")
    return next((bits for name, bits in _BITS.items() if name in features), 0)


def lane_count(body: Body, options: Options) -> int:
    """Lanes for a body of lanes: as many as the options say, or else by the processor's vectors and
    the widest elements."""
    return options.lanes or _VECTORS * vector_bits() // _widest(body)


def _widest(body: Body) -> int:
    """Bits of the widest elements that a body of lanes has vectors of. Where it applies functions
    of 32 bits, which are most of its work, indices of 64 bits do not count."""
    assert body.varying is not None
    types = {value.type for value in body.varying if value.type is not None}
    applied = {o.fact(0, PureFunction) for o in body.operations if o.name == "apply"}
    if applied and F64 not in types and all(map(_is_short, applied)):
        return F32.bits
    found = [t.bits for t in types if not isinstance(t, Boolean)]
    return max(found, default=I64.bits)


def _is_short(function: PureFunction) -> bool:
    """True if a function computes with elements of 32 bits, but for what is branched over."""
    body = function_body(function)
    main = set(body.operations) - body.conditional()
    types = {operation.type for operation in main}
    return not types & {F64, I64}
