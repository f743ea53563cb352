# SPDX-License-Identifier: Apache-2.0
"""A dialect: the spelling of C constructs for a family of compilers.

Operators are the same in all of them. Other operations are calls of *helpers*, small functions with
fixed names, which the dialect defines:

| helpers | result |
|---|---|
| `unlikely(p)` | `p`, which is rarely true |
| `unreachable()` | nothing: control never gets there |
| `clz_i32(a)` `ctz_i32(a)` `popcnt_i32(a)`, `_i64` | counts of bits; of zero the width |
| `add_overflows_i32(a, b)` `sub_overflows_i32` `mul_overflows_i32`, `_i64` | true if the exact signed sum does not fit, the difference, the product |
| `fma_f32(a, b, c)`, `_f64` | `a * b + c`, rounded once |
| `sqrt_f32(a)` `ceil_f32` `floor_f32` `trunc_f32` `nearest_f32`, `_f64` | IEEE 754 roundings |
| `canonical_f32(a)`, `_f64` | `a`, or the canonical NaN if it is any NaN |
| `bits_of_f32(a)` `f32_of_bits(b)`, `f64` | the same bits in another type |
| `load_1(heap, address)`, `_2 _4 _8` | bytes of the heap, zero-extended |
| `store_1(heap, address, value)`, `_2 _4 _8` | nothing: stores the low bytes |
| `object_load_1(address)`, `_2 _4 _8` | bytes of an object or of elements, zero-extended |
| `object_store_1(address, value)`, `_2 _4 _8` | nothing: stores the low bytes |
| `object_add_4(address, value)` `object_min_s_4` and so on, `_8` | the former element, zero-extended: an atomic update (`ferryvm.isa.emitter.Atomic`) |
| `object_compare_exchange_4(address, expected, value)`, `_8` | the former element likewise |
| `object_fill_1(address, count, value)`, `_2 _4 _8` | nothing: stores the low bytes in each element |
| `object_move(to, from, size)` | nothing: copies bytes to elements, which may overlap |
| `object_clear(address, size)` | nothing: makes bytes of objects zero |
| `heap_move(to, from, size)` | nothing: copies bytes of elements to an address of the heap |
| `object_place(place)` | the code's own place for one of a header; optional |
| `object_host_place(place)` | the place for a header, of the code's own; with the former |
| `frame_address(frame)` | its address on the machine's stack, where it stands elsewhere; optional |
| `interrupted(control)` | true if the program is to stop: called in loops, occasionally |
| `entered(control)` | the same: called at each entry of a function |
| `carried(a)` | `a`, an f64 that a loop without checks passes to its next iteration; optional |
| `in_order()` | before a loop that passes floats to its next iteration; optional |
| `host_stack()` | the lowest address in use of the native stack |
| `nanoseconds()` | a clock |
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping

from ferryvm.ir.graph import ValueType
from ferryvm.isa.type import Type


@dataclasses.dataclass(frozen=True)
class Dialect:
    """The spelling of types and constructs. Two with the same name are equal."""

    name: str
    types: Mapping[ValueType, str] = dataclasses.field(compare=False)
    """Types of values; integers are unsigned."""
    signed: Mapping[Type, str] = dataclasses.field(compare=False)
    """The signed integer of each integer type."""
    suffixes: Mapping[Type, str] = dataclasses.field(compare=False)
    """Suffixes of literals, by type."""
    prelude: str = dataclasses.field(compare=False)
    """The start of every text."""
    helpers: Mapping[str, str] = dataclasses.field(compare=False)
    """Definitions by name; a helper that uses another comes after it."""
    segments: Mapping[str, str] = dataclasses.field(compare=False)
    """The memory that the control block points to: expressions of the addresses `statics`,
    `stack`, `stack_end` and `heap`, and of arrays of words `functions` and `table`. Also, where
    code uses references, `objects`, an address as a word, and the array of words `types`."""
    parameters: str = dataclasses.field(compare=False)
    """The first parameters of every function; one of them is `control`, the control block."""
    passed: str = dataclasses.field(compare=False)
    """The same in the form of arguments."""
    entry: str = dataclasses.field(default="", compare=False)
    """The definition of `ENTRY` for a text that has no variables of its own and so counts nothing;
    then `exit_id` identifies the failed guard, and `interrupted` is called occasionally to stop
    it."""
    constant: str = "static const "
    """Declaration specifiers of arrays of constants, with the space after them."""
    look_up: str = "#define {name}_at(n) {name}[n]\n"
    """The definition of the function of an index, `{name}_at`, for an array of constants `{name}`;
    its `{type}`, `{letter}` and `{bits}` are those of an element."""
    byte: str = "uint8_t"
    space: str = ""
    """Qualifier of pointers to the machine's memory, with the space after it."""
    frame_space: str | None = None
    """The same for pointers to the stack, if that is elsewhere."""
    exit_stores: str = ""
    """Qualifier of the words of frames that exits store, with the space after it."""
    has_root: bool = True
    """False if `entry` calls functions of the region itself, in place of the region's own body."""
    apart: str = ""
    """Prefix of a function that must not be inlined, so that its frame is allocated when it is
    called."""
    internal: str = ""
    """Declaration specifiers of functions without external callers."""
    cold: str = ""
    """The same for functions that rarely run."""
    external: str = ""
    """Declaration specifiers of the function that enters the region, and of exports."""
    unfused: str = ""
    """The start of a text of which a compiler would fuse operations otherwise."""
    launch_word: Callable[[int], str] | None = dataclasses.field(default=None, compare=False)
    """The expression of the word of a launch, by its number; None: `control->launches` points to
    the words."""

    @property
    def word(self) -> str:
        """The type of a word."""
        return self.types[Type.I64]

    @property
    def status(self) -> str:
        """The type of a status."""
        return self.types[Type.I32]

    @property
    def words(self) -> str:
        """The type of a pointer to words of the machine's memory."""
        return f"{self.space}{self.word} *"

    @property
    def frames(self) -> str:
        """The type of a pointer to words of the stack."""
        space = self.space if self.frame_space is None else self.frame_space
        return f"{space}{self.word} *"

    @property
    def bytes(self) -> str:
        """The type of a pointer to bytes of the machine's memory."""
        return f"{self.space}{self.byte} *"

    def definitions(self, used: Iterable[str]) -> list[str]:
        """Definitions of helpers, and of those that they and `entry` use."""
        wanted = set(used) | set(re.findall(r"\w+", self.entry)) & self.helpers.keys()
        for name in reversed(list(self.helpers)):
            if name in wanted:
                words = set(re.findall(r"\w+", self.helpers[name]))
                wanted |= words & self.helpers.keys()
        return [text for name, text in self.helpers.items() if name in wanted]


def helper_text(result: str, name: str, parameters: str, *body: str) -> str:
    """The definition of a helper that is a function; lines that begin with `#` are preprocessor
    directives."""
    lines = "".join(line + "\n" if line.startswith("#") else f"    {line}\n" for line in body)
    return f"static inline {result} {name}({parameters})\n{{\n{lines}}}\n"
