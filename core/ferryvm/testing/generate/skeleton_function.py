# SPDX-License-Identifier: Apache-2.0
"""Functions of maps, reductions and scans in random programs, and those of elements.

    element kinds, operations ─> ferryvm.skeleton ─> functions of the program, with their names

They are those that the builder and Skiff generate, under the same names, so compilers recognise
them. What they call for elements writes nothing that items share (`item`).
"""

from __future__ import annotations

from collections.abc import Sequence

from ferryvm.isa.element import Element
from ferryvm.isa.frame import return_immediate
from ferryvm.isa.type import Reference, Type, ValueType
from ferryvm.listing import FunctionListing, Label
from ferryvm.program import Signature
from ferryvm.skeleton.array_type import OF_VALUE, ArrayType
from ferryvm.skeleton.mapping import Mapping, mapping
from ferryvm.skeleton.operation import FLOATS, INTEGERS, Operation
from ferryvm.skeleton.reduction import reduction, reduction_name
from ferryvm.skeleton.scan import scan, scan_name
from ferryvm.testing.generate.body import Callee, SkeletonFunction
from ferryvm.testing.generate.catalogue import OPCODE
from ferryvm.testing.generate.function import Shape
from ferryvm.testing.generate.item import ItemFunctions
from ferryvm.testing.generate.literal import I32, I64, NUMBER
from ferryvm.testing.generate.object_type import FIRST, Family, ObjectTypes
from ferryvm.testing.generate.statement import Statements

_RETURN = OPCODE["return"]

_FIXED = 330
"""Instructions of a call, besides those for elements, at most."""
_REDUCED, _SCANNED, _MAPPED = 26, 48, 40
"""The same for one element, besides those of a function."""
_BUDGET = 30
"""Instructions of a function for elements, roughly."""

_ELEMENTS = {element.kind: element for element in Element}


class SkeletonFunctions(ItemFunctions):
    """The functions of maps, reductions and scans, and those of the program that they call."""

    def make(self, size: int, work: int) -> None:
        """Functions for some operations and kinds of arrays."""
        numbers: dict[str, int] = {}
        for _ in range(self.chance.between(1, 3)):
            kind = self.chance.below(5)
            if kind < 2:
                self._map(numbers, size, in_place=kind == 1)
            else:
                self._combine(numbers, size, is_scan=kind == 4)

    def _combine(self, numbers: dict[str, int], size: int, *, is_scan: bool) -> None:
        """A reduction, or a scan."""
        chance, types = self.chance, self._types()
        found = [f for f in types.families.values() if f.suffix in _ELEMENTS]
        if is_scan:  # its results are in the program's arrays
            found = [f for f in found if self._results(f) in types.families]
        if not found:
            return
        family = chance.pick(found)
        array = self._array(family)
        value = array.value
        assert isinstance(value, Type)
        t, cost, heap, is_risky = NUMBER[value], 0, 0, False
        if chance.flip(0.4):
            body, number = self._called(((t, t), t, ()), size)
            operation = Operation(f"f{number}", is_function=True)
            cost, heap, is_risky = body.cost, body.heap, body.is_risky
            numbers[operation.name] = number
        else:
            names = FLOATS if value.is_float else INTEGERS
            operation = Operation(chance.pick((*names,)))
        has_initial = not is_scan and (operation.is_function or chance.flip(0.3))
        if is_scan:
            name, listings = scan_name(operation, array), scan(operation, array)
            result, each = self._results(family), _SCANNED + 2 * cost
        else:
            name = reduction_name(operation, array, has_initial)
            listings = reduction(operation, array, has_initial)
            result, each = t, _REDUCED + cost
        self._append(listings, numbers)
        parameters = (t, family.array) if has_initial else (family.array,)
        self._offer_skeleton(
            numbers[name], parameters, (result,), (len(parameters) - 1,), (), each, heap, is_risky
        )

    def _map(self, numbers: dict[str, int], size: int, *, in_place: bool) -> None:
        """A map of one or two arrays, with some shared arguments."""
        chance, types = self.chance, self._types()
        families = (*types.families.values(),)
        read = [chance.pick(families) for _ in range(chance.pick((1, 1, 2)))]
        to = [chance.pick(families) for _ in range(chance.pick((1, 1, 1, 2)))]
        shared = [self.plan.any_type() for _ in range(chance.below(3))]
        results = [self._value(family) for family in to]
        shape = (*map(self._value, read), *shared), results[-1], tuple(results[:-1])
        body, number = self._called(shape, size)
        name = f"f{number}"
        numbers[name] = number
        arrays = (*map(self._array, read), *(None for _ in shared))
        signature = Signature(self._valued(shape[0]), self._valued(results))
        of = Mapping(name, signature, arrays, tuple(map(self._array, to)), in_place)
        self._append(mapping(of), numbers)
        given = [family.array for family in to]
        parameters = (*(given if in_place else ()), *shared, *(family.array for family in read))
        self._offer_skeleton(
            numbers[of.name],
            parameters,
            () if in_place else tuple(given),
            (*range(len(parameters) - len(read), len(parameters)),),
            (*range(len(to) if in_place else 0),),
            _MAPPED + body.cost,
            body.heap,
            body.is_risky,
        )

    # --- parts ------------------------------------------------------------------------------------

    def _called(self, shape: Shape, size: int) -> tuple[Statements, int]:
        """A function for elements, and its number."""
        entry, limit = len(self.plan.ops), max(8, size // 8)
        body = self._function(shape, limit, _BUDGET)
        while body.has_capacity:
            body.statement()
        self._leave(body)
        body.settle()
        self._add(entry, shape, body)
        return body, len(self.made)

    def _append(self, listings: Sequence[FunctionListing], numbers: dict[str, int]) -> None:
        """The functions, those that the program has already apart; their numbers, by name."""
        new = [one for one in listings if one.name not in numbers]
        for number, listing in enumerate(new, len(self.made) + 1):
            numbers[listing.name] = number
            self.plan.names[number] = listing.name
        for listing in new:
            self._encode(listing, numbers)

    def _encode(self, listing: FunctionListing, numbers: dict[str, int]) -> None:
        """Append the code of a function."""
        parameters = tuple(map(_number, listing.signature.parameters))
        results = tuple(map(_number, listing.signature.results))
        plan, labels = self.plan, {}
        entry = pc = len(plan.ops)
        for item in listing.items:
            if isinstance(item, Label):
                labels[item.name] = pc
            else:
                pc += 1
        for item in listing.items:
            if isinstance(item, Label):
                continue
            operand = item.operand
            if isinstance(operand, str):
                operand = labels[operand] if operand in labels else numbers[operand]
            if item.row.opcode == _RETURN:
                operand = return_immediate(len(parameters), len(results))
            assert operand is None or isinstance(operand, int)
            plan.ops.append(item.row.opcode)
            plan.immediates.append(operand or 0)
        shape = parameters, results[-1] if results else None, results[:-1]
        locals_ = [*parameters, *map(_number, listing.locals)]
        self.made.append((entry, self.signature(*shape), locals_, len(parameters)))

    def _offer_skeleton(
        self,
        number: int,
        parameters: tuple[int, ...],
        results: tuple[int, ...],
        read: tuple[int, ...],
        written: tuple[int, ...],
        each: int,
        heap: int,
        is_risky: bool,
    ) -> None:
        shape = parameters, results[-1] if results else None, results[:-1]
        callee = Callee(number, self.signature(*shape), *shape, _FIXED, heap, is_risky)
        self.plan.skeletons.append(SkeletonFunction(callee, read, written, each))

    def _types(self) -> ObjectTypes:
        assert self.plan.objects is not None
        return self.plan.objects

    def _array(self, family: Family) -> ArrayType:
        types = self._types().types
        if family.suffix in _ELEMENTS:
            return ArrayType.of(_ELEMENTS[family.suffix])
        array, element = types[family.array], types[family.element]
        assert isinstance(array, Reference)
        assert isinstance(element, Reference)
        return ArrayType(array, element)

    def _results(self, family: Family) -> int:
        """The type of the arrays with the values of an array of numbers."""
        value = self._array(family).value
        assert isinstance(value, Type)
        return FIRST + OF_VALUE[value].reference.number

    def _value(self, family: Family) -> int:
        """The type of an element as a function gets it: of narrow integers one of two."""
        is_narrow = self._array(family).is_narrow
        return self.chance.pick((I32, I64)) if is_narrow else family.element

    def _valued(self, types: Sequence[int]) -> tuple[ValueType, ...]:
        return tuple(self.plan.types[t] for t in types)


def _number(t: ValueType) -> int:
    return FIRST + t.number if isinstance(t, Reference) else NUMBER[t]
