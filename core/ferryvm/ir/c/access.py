# SPDX-License-Identifier: Apache-2.0
"""Operations that read or change the machine's state without leaving, as C statements."""

from __future__ import annotations

from ferryvm.ir.c.scope import FunctionScope
from ferryvm.ir.graph import Operation
from ferryvm.isa.type import Type


class Access:
    """Prints operations that affect memory only."""

    def __init__(self, scope: FunctionScope) -> None:
        self.scope = scope

    def do_word(self, operation: Operation) -> str:
        (index,), t = operation.static, operation.type
        assert isinstance(t, Type)
        return self.scope.arithmetic.from_slot(t, f"{self.scope.base('frame')}[{index}]")

    def do_result(self, operation: Operation) -> str:
        return self.do_word(operation)

    def do_frame(self, operation: Operation) -> str:
        return self.scope.frame_address()

    def do_stack_limit(self, operation: Operation) -> str:
        return self.scope.dialect.segments["stack_end"]

    def do_heap_capacity(self, operation: Operation) -> str:
        return "control->heap_capacity"

    def do_heap_pointer(self, operation: Operation) -> str:
        return "control->hp"

    def do_set_heap_pointer(self, operation: Operation, value: str) -> None:
        self.scope.lines.add(f"control->hp = {value};")

    def do_function_field(self, operation: Operation, function: str) -> str:
        field = operation.static[0]
        assert isinstance(field, int)
        return f"{self.scope.dialect.segments['functions']}[{function} * FERRY_DESCRIPTOR_WORDS + {int(field)}]"

    def do_table_function(self, operation: Operation, index: str) -> str:
        return f"{self.scope.dialect.segments['table']}[{index}]"

    # --- context arrays of groups -----------------------------------------------------------

    def _in_context(self, operation: Operation, array: str, index: str) -> tuple[int, str]:
        """The bytes of an element, and its address."""
        bytes_ = operation.fact(0, Type).bits // 8
        return bytes_, f"{array} + {index} * {bytes_}"

    def do_context_load(self, operation: Operation, array: str, index: str) -> str:
        bytes_, address = self._in_context(operation, array, index)
        slot = self.scope.helper(f"object_load_{bytes_}", address)
        return self.scope.arithmetic.from_slot(operation.fact(0, Type), slot)

    def do_context_store(self, operation: Operation, array: str, index: str, value: str) -> None:
        bytes_, address = self._in_context(operation, array, index)
        slot = self.scope.arithmetic.to_slot(operation.fact(0, Type), value)
        self.scope.lines.add(f"{self.scope.helper(f'object_store_{bytes_}', address, slot)};")

    def do_begin_group(self, _operation: Operation) -> None:
        """Exits write all words of their frames."""

    # --- statics and heap -------------------------------------------------------------------

    def do_launch_word(self, operation: Operation) -> str:
        dialect, number = self.scope.dialect, operation.fact(0, int)
        if dialect.launch_word is not None:
            return dialect.launch_word(number)
        return f"(({dialect.words})control->launches)[{number}]"

    def do_static(self, operation: Operation) -> str:
        (number,), t = operation.static, operation.type
        assert isinstance(t, Type)
        return self.scope.arithmetic.from_slot(t, f"{self.scope.base('statics')}[{number}]")

    def do_set_static(self, operation: Operation, value: str) -> None:
        t = operation.arguments[0].type
        assert isinstance(t, Type)
        self.scope.lines.add(
            f"{self.scope.base('statics')}[{operation.static[0]}] = {self.scope.arithmetic.to_slot(t, value)};"
        )

    def do_static_at(self, operation: Operation, index: str) -> str:
        return f"{self.scope.base('statics')}[{index}]"

    def do_set_static_at(self, operation: Operation, index: str, slot: str) -> None:
        self.scope.lines.add(f"{self.scope.base('statics')}[{index}] = {slot};")

    def do_heap_load(self, operation: Operation, address: str) -> str:
        return self.scope.helper(f"load_{operation.static[0]}", self.scope.base("heap"), address)

    def do_heap_store(self, operation: Operation, address: str, value: str) -> None:
        store = self.scope.helper(
            f"store_{operation.static[0]}", self.scope.base("heap"), address, value
        )
        self.scope.lines.add(f"{store};")

    def do_report_version(self, operation: Operation, reason: str) -> None:
        """No code: C code does not report the executed versions of nests."""

    def do_canonicalise(self, operation: Operation, *operands: str) -> None:
        t = operation.fact(0, Type)
        size = t.bits // 8
        values = operands[1::2]
        nans = self.scope.arithmetic.any_nan(t, values)
        self.scope.lines.open(f"if ({self.scope.helper('unlikely', nans)}) {{")
        for address, value in zip(operands[::2], values, strict=True):
            bits = self.scope.arithmetic.to_slot(t, self.scope.arithmetic.canonical(t, value))
            store = self.scope.helper(f"store_{size}", self.scope.base("heap"), address, bits)
            self.scope.lines.add(f"{store};")
        self.scope.lines.close()
