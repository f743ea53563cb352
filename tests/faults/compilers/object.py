# SPDX-License-Identifier: Apache-2.0
"""Faults in what compilers make of references: the lifter, the passes, and each lowering."""

from __future__ import annotations

from .planting import CompilerFault

OBJECTS: list[CompilerFault] = []
"""By module."""


def _put(
    module: str, backend: str, name: str, what: str, old: str, new: str, in_loops: bool = False
) -> None:
    OBJECTS.append(CompilerFault(name, what, backend, module, old, new, in_loops))


# --- the region IR ------------------------------------------------------------------------------

_put(
    "ferryvm.ir.object_lifter",
    "llvm",
    "allocation-of-the-wrong-size",
    "An object that does not fit asks for as many bytes as the number of its type.",
    'self._check("allocate_if", (), (p, wanted, type_))',
    'self._check("allocate_if", (), (p, type_, type_))',
)
_put(
    "ferryvm.ir.object_lifter",
    "cc",
    "field-one-word-lower",
    "The field of a struct is the word in front of it.",
    "self.constant(I64, WORD_BYTES * (1 + field))",
    "self.constant(I64, WORD_BYTES * (2 + field))",
)
_put(
    "ferryvm.ir.object_lifter",
    "llvm",
    "length-read-for-the-header",
    "Where the type in a header is wanted the length behind it is read.",
    "        return base, more // WORD_BYTES\n",
    "        return base, max(more // WORD_BYTES, 1)\n",
)
_put(
    "ferryvm.ir.object_lifter",
    "vliw",
    "row-of-the-type-before",
    "A test reads the row of the type with the number below.",
    "return self.constant(I64, self.types.row(type_.bits)[word.bits])",
    "return self.constant(I64, self.types.row(max(type_.bits - 1, 0))[word.bits])",
)
_put(
    "ferryvm.ir.object_lifter",
    "llvm",
    "fields-of-references-only",
    "`struct.new` stores its first field alone.",
    "            self._store_field(reference, self.immediate, field, slot)\n",
    "            self._store_field(reference, self.immediate, 0, slot)\n",
)
_put(
    "ferryvm.ir.passes.value_numbering",
    "llvm",
    "register-of-the-space-merged",
    "The end of the last object is read once, and not again after an object was made.",
    "            elif name in FIXED:",
    '            elif name in FIXED or name == "object_top":',
)

# --- llvm -----------------------------------------------------------------------------------------

_put(
    "ferryvm_backends.llvm.object",
    "llvm",
    "load-and-store-of-a-field-apart",
    "A load of a field and a store to it are taken for accesses that never overlap.",
    'f"field {number} {field}"',
    'f"field {number} {field} {operation.name}"',
)
_put(
    "ferryvm_backends.llvm.object",
    "llvm",
    "load-and-store-of-an-element-apart",
    "A load of an element and a store to it are taken for accesses that never overlap.",
    'f"elements {elements}"',
    'f"elements {elements} {operation.name}"',
)
_put(
    "ferryvm_backends.llvm.object",
    "llvm",
    "elements-extended-by-sign",
    "Loads of narrow elements are extended by sign in their words.",
    "return self.builder.zext(value, WORD) if",
    "return self.builder.sext(value, WORD) if",
)
_put(
    "ferryvm_backends.llvm.object",
    "llvm",
    "one-element-more-is-filled",
    "A fill stores into the element behind the last one.",
    'self.builder.icmp_unsigned("==", following, count)',
    'self.builder.icmp_unsigned("==", number, count)',
)
_put(
    "ferryvm_backends.llvm.object",
    "llvm",
    "elements-copied-back",
    "A copy of elements goes from the second array to the first one.",
    'self._copy("memmove", self._elements(to_place, to_offset), source, size)',
    'self._copy("memmove", source, self._elements(to_place, to_offset), size)',
)
_put(
    "ferryvm_backends.llvm.object",
    "llvm",
    "prepared-elements-taken-twice",
    "Two large arrays made one after another have the same elements.",
    'self.storage.set_field(self.function.control, "prepared", word(0))',
    'self.storage.field(self.function.control, "prepared")',
    in_loops=True,
)
_put(
    "ferryvm_backends.llvm.object",
    "llvm",
    "next-object-in-the-same-place",
    "The end of the last object does not rise: the next one overwrites it.",
    'self.storage.set_field(self.function.control, "object_top", value)',
    'self.storage.field(self.function.control, "object_top")',
)

# --- C --------------------------------------------------------------------------------------------

_put(
    "ferryvm.ir.c.object",
    "cc",
    "next-object-overlaps",
    "An object begins at the last word of the one before.",
    'f"control->object_top = {value};"',
    'f"control->object_top = {value} - 8;"',
)
_put(
    "ferryvm.ir.c.object",
    "cc",
    "first-field-on-the-header",
    "The fields of a struct begin at its header.",
    "        first = STRUCT_HEADER_BYTES + WORD_BYTES * operation.fact(1, int)\n",
    "        first = WORD_BYTES * operation.fact(1, int)\n",
)
_put(
    "ferryvm.ir.c.object",
    "opencl",
    "prepared-not-cleared",
    "The elements that were prepared for one array are taken for the next one, too.",
    'self.scope.lines.add("control->prepared = 0;")',
    'self.scope.lines.add(";")',
    in_loops=True,
)
_put(
    "ferryvm.ir.c.object",
    "opencl",
    "elements-without-their-offset",
    "Each element is the first one of its array.",
    "return f\"{self.scope.base('objects')} + {place} + {offset}\"",
    "return f\"{self.scope.base('objects')} + {place} + 0 * {offset}\"",
)
_put(
    "ferryvm.ir.c.object",
    "cc",
    "fill-from-the-first-element-on",
    "A fill begins at the first element of its array.",
    "fill = self.scope.helper(name, self._elements(place, offset), count, value)",
    'fill = self.scope.helper(name, self._elements(place, "0"), count, value)',
)

# --- atomic updates -------------------------------------------------------------------------------

_put(
    "ferryvm.ir.passes.dead_code",
    "llvm",
    "unused-update-removed",
    "An atomic update whose result is not used is removed.",
    "operation.type is None or operation.name in EFFECTS:",
    'operation.type is None or operation.name in EFFECTS - {"update_element"}:',
)
_put(
    "ferryvm.ir.passes.load_forwarding",
    "vliw",
    "load-kept-over-an-update",
    "A load of an element is that of before an atomic update.",
    "    | UPDATES\n",
    "    | set()\n",
)
_put(
    "ferryvm.ir.object_lifter",
    "llvm",
    "or-that-adds",
    "An atomic or adds.",
    "        static = self._elements(), kind\n",
    '        static = self._elements(), Atomic.ADD if kind.value == "or" else kind\n',
)
_put(
    "ferryvm_backends._llvm.atomic",
    "llvm",
    "unsigned-minimum-signed",
    "An atomic minimum of unsigned elements compares by sign.",
    '    Atomic.MIN_U: "umin",\n',
    '    Atomic.MIN_U: "min",\n',
)
_put(
    "ferryvm.ir.c.object",
    "cc",
    "expected-and-new-swapped",
    "A comparison and exchange stores what is expected where the new element is.",
    "self._elements(place, offset), expected, value)",
    "self._elements(place, offset), value, expected)",
)
_put(
    "ferryvm_backends.vliw.code.lower.object",
    "vliw",
    "minimum-for-maximum",
    "An atomic minimum or maximum stores the other one.",
    "(t, _COMPARED[kind]), (operand, old))",
    "(t, _COMPARED[kind]), (old, operand))",
)

# --- vliw -----------------------------------------------------------------------------------------

_put(
    "ferryvm_backends.vliw.code.lower.object",
    "vliw",
    "overlapping-copy-from-the-front",
    "Elements that lie behind where they come from are copied from the first one on, too.",
    "(I64, Condition.GT_U), (to, from_))",
    "(I64, Condition.GT_U), (to, to))",
)
_put(
    "ferryvm_backends.vliw.code.lower.object",
    "vliw",
    "fill-of-nothing-fills",
    "A fill of no elements stores into one, and goes on.",
    'emission.compute("compare", (I64, Condition.EQ), (size, 0))',
    'emission.compute("compare", (I64, Condition.EQ), (size, 1))',
)
_put(
    "ferryvm_backends.vliw.code.lower.object",
    "vliw",
    "allocation-for-the-wrong-type",
    "An object that does not fit asks for bytes of the type with the number of its bytes.",
    "wanted=wanted, wanted_type=type_)",
    "wanted=wanted, wanted_type=wanted)",
)
_put(
    "ferryvm_backends.vliw.code.lower.object",
    "vliw",
    "header-and-field-apart",
    "A header word and the first field are where the other one is.",
    "    return STRUCT_HEADER_BYTES + WORD_BYTES * part.field\n",
    "    return WORD_BYTES * part.field\n",
)
