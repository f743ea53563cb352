# SPDX-License-Identifier: Apache-2.0
"""A typed tree to a listing.

Code shapes that run fast in the interpreters are generated here, not left to the peephole:

    (while c body ...)      jump test        (if (and a b) x y)     a  jump_unless else
                     top:   body ...                                b  jump_unless else
                     test:  c                                       x  jump end
                            jump_if top                      else:  y
                                                             end:

Conditions become jumps: `and`, `or` and `not` are control flow and not numbers, and a comparison is
negated by the jump after it (not by the opposite comparison, which differs for NaN).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ferryvm.isa import BY_MNEMONIC, Type
from ferryvm.isa.launch import LAUNCH_WORDS
from ferryvm.isa.type import ValueType
from ferryvm.listing import FunctionListing, Item, Label, Line, Listing
from ferryvm.listing import Operand as Immediate
from ferryvm.program import HostImport, Signature, Static, Tag
from ferryvm.skiff import tree
from ferryvm.skiff.exception_code import TAG, ExceptionCode
from ferryvm.skiff.number import number_bits
from ferryvm.skiff.object_code import ObjectCode, piece_function
from ferryvm.skiff.object_type import ObjectTypes
from ferryvm.skiff.operator import converter
from ferryvm.skiff.tree import Function, Node, Tree, Variable
from ferryvm.skiff.type import (
    NOTHING,
    ArrayOf,
    default,
    number_type,
)

if TYPE_CHECKING:
    from ferryvm.skiff.skeleton_code import SkeletonCode


def generate(program: Tree, types: ObjectTypes) -> Listing:
    """The listing of a tree without faults; its types are added to those of earlier texts."""
    names = {function.name for function in program.functions[1:]}
    main = program.functions[0]
    while main.name in names:  # unless the program has its own function `main`
        main.name += "_"
    hosts: dict[str, HostImport] = {}
    generated: dict[str, FunctionListing] = {}
    listing = Listing()
    for struct in program.structs:
        types.reference(struct)
    tag = Tag(TAG, (types.value(program.exception),))
    for static in program.statics:
        listing.statics.append(Static(static.name, types.value(static.type)))
    for function in program.functions:
        generator = _Generator(function, hosts, types, tag, generated)
        is_main = function is main
        listing.functions.append(generator.generate(program.texts if is_main else [], is_main))
        if generator.exceptions.is_used:
            listing.tags = [tag]
    listing.hosts = list(hosts.values())
    listing.exports = {
        function.name: function.name
        for function in program.functions[1:]
        if not function.is_wrapper
    }
    listing.functions += generated.values()
    if program.texts:
        listing.functions.append(piece_function(program.texts))
    listing.types = types.declared()
    return listing


def _is_nothing(node: Node) -> bool:
    return default(node.type) == NOTHING


class _Generator:
    def __init__(
        self,
        function: Function,
        hosts: dict[str, HostImport],
        types: ObjectTypes,
        tag: Tag,
        generated: dict[str, FunctionListing],
    ) -> None:
        self.function = function
        self.hosts = hosts
        self.types = types
        self.items: list[Item] = []
        self.labels = 0
        self.depth = 0
        """Operands on the stack."""
        self.temporaries: dict[tuple[ValueType, int], int] = {}
        objects = self.objects = ObjectCode(self)
        exceptions = self.exceptions = ExceptionCode(self, tag)
        self.generated = generated
        self.rules: dict[type[Node], Callable[[Any], None]] = {
            tree.Literal: self._literal,
            tree.Get: self._get,
            tree.Set: self._set,
            tree.Block: self._block,
            tree.Choice: self._choice,
            tree.While: self._while,
            tree.Throw: exceptions.throw,
            tree.Try: exceptions.try_,
            tree.Finally: exceptions.finally_,
            tree.Logic: self._logic,
            tree.Not: self._not,
            tree.Operation: self._operation,
            tree.Direct: self._direct,
            tree.Convert: self._convert,
            tree.Call: self._call,
            tree.Launch: self._launch,
            tree.GroupLaunch: lambda node: self.skeletons.group_launch(node),
            tree.Map: lambda node: self.skeletons.map(node),
            tree.Scan: lambda node: self.skeletons.scan(node),
            tree.GroupOperation: lambda node: self.skeletons.group_operation(node),
            tree.Reduce: lambda node: self.skeletons.reduce(node),
            tree.Print: self._print,
            tree.WriteByte: self._write_byte,
            tree.WriteString: objects.write_string,
            tree.Text: objects.text,
            tree.Null: objects.null,
            tree.Same: objects.same,
            tree.TypeTest: objects.type_test,
            tree.Cast: objects.cast,
            tree.OnArray: objects.on_array,
            tree.OnStruct: objects.on_struct,
        }

    def generate(self, texts: list[tree.Text], is_main: bool) -> FunctionListing:
        """The listing of the function; `texts`: string literals that it makes first."""
        function = self.function
        for number, variable in enumerate(function.locals):
            variable.number = number
        returns = default(function.result) != NOTHING
        self.objects.make_texts(texts)
        self.depth = 0
        for node in function.body[:-1]:
            self.statement(node)
        last = function.body[-1] if function.body else tree.Block(function.place, [], "begin")
        emit = self.value if returns and function.body else self.statement
        if is_main:
            emit(last)
            self.emit(last, "halt")
        else:
            self._tail(last, emit, int(returns))
        types = (*(self.types.value(v.type) for v in function.locals), *self._temporary_types())
        count = len(function.parameters)
        results = (self.types.value(function.result),) if returns and not is_main else ()
        signature = Signature(types[:count], results)
        names = tuple(variable.name for variable in function.locals[:count])
        return FunctionListing(
            function.name,
            signature,
            types[count:],
            self.items,
            self.exceptions.clauses,
            parameters=names,
        )

    def _temporary_types(self) -> list[ValueType]:
        return [type_ for type_, _ in self.temporaries]

    @functools.cached_property
    def skeletons(self) -> SkeletonCode:
        """Rules for the nodes of skeletons."""
        from ferryvm.skiff.skeleton_code import SkeletonCode  # few texts have some

        return SkeletonCode(self, self.generated)

    # Building blocks

    def temporary(self, type_: ValueType, number: int) -> int:
        """The number of a local without a name; the same one for equal arguments."""
        named = len(self.function.locals)
        return self.temporaries.setdefault((type_, number), named + len(self.temporaries))

    def emit(self, node: Node, mnemonic: str, immediate: Immediate = None) -> None:
        """Append an instruction for a node."""
        row = BY_MNEMONIC[mnemonic]
        self.depth += len(row.pushes) - len(row.pops)
        self.items.append(Line(BY_MNEMONIC[mnemonic], immediate, node.place.position))

    def label(self, kind: str) -> str:
        """A new label's name."""
        self.labels += 1
        return f"{kind}{self.labels}"

    def place(self, name: str) -> None:
        """Define a label here."""
        self.items.append(Label(name))

    def host(self, node: Node, name: str, type_: ValueType) -> None:
        """Call a host function of one parameter."""
        self.hosts.setdefault(name, HostImport(name, Signature((type_,))))
        self.emit(node, "host", name)
        self.depth -= 1

    def constant(self, node: Node, type_: Type, bits: int) -> None:
        """Push a constant."""
        self.emit(node, f"{type_}.const", bits)

    def value(self, node: Node) -> None:
        """Generate code that leaves a node's value."""
        depth = self.depth
        self.rules[type(node)](node)
        self.depth = depth + (not _is_nothing(node))

    def statement(self, node: Node) -> None:
        """Generate code that leaves nothing."""
        if isinstance(node, tree.Block):
            self._jit_mark(node, "enter_jit")
            for child in node.body:
                self.statement(child)
            self._jit_mark(node, "leave_jit")
        elif isinstance(node, tree.Choice):
            self._arms(node, self.statement)
        elif isinstance(node, tree.Try):
            self.exceptions.guarded(node, self.statement)
        elif isinstance(node, tree.Finally):
            self.exceptions.cleaned(node, self.statement)
        else:
            self.value(node)
            if not _is_nothing(node):
                self.emit(node, "drop")

    # Conditions

    def branch(self, node: Node, target: str, when: bool) -> None:
        """Generate code that jumps to the label if the node's boolean is `when`, and else falls
        through."""
        if isinstance(node, tree.Not):
            self.branch(node.operand, target, not when)
        elif isinstance(node, tree.Logic):
            self._branch_logic(node, target, when)
        elif isinstance(node, tree.Block) and not node.is_jit:
            for child in node.body[:-1]:
                self.statement(child)
            self.branch(node.body[-1], target, when)
        elif isinstance(node, tree.Literal):
            if bool(number_bits(node.number, number_type(node.type))) is when:
                self.emit(node, "jump", target)
        else:
            self.value(node)
            if number_type(node.type) is Type.I64:
                self.emit(node, "i64.eqz")
                when = not when
            self.emit(node, "jump_if" if when else "jump_unless", target)

    def _branch_logic(self, node: tree.Logic, target: str, when: bool) -> None:
        if node.is_and is not when:  # one operand decides: `and` is false, `or` is true
            for operand in node.operands:
                self.branch(operand, target, when)
            return
        through = self.label("through")
        for operand in node.operands[:-1]:
            self.branch(operand, through, not when)
        self.branch(node.operands[-1], target, when)
        self.place(through)

    # Control

    def _jit_mark(self, node: tree.Block, mnemonic: str) -> None:
        if node.is_jit:
            self.emit(node, mnemonic)

    def _block(self, node: tree.Block) -> None:
        if _is_nothing(node):
            self.statement(node)
            return
        self._jit_mark(node, "enter_jit")
        for child in node.body[:-1]:
            self.statement(child)
        self.value(node.body[-1])
        self._jit_mark(node, "leave_jit")

    def _choice(self, node: tree.Choice) -> None:
        self._arms(node, self.statement if _is_nothing(node) else self.value)

    def _arms(self, node: tree.Choice, emit: Callable[[Node], None]) -> None:
        end, depth = self.label("end"), self.depth
        for number, (condition, body) in enumerate(node.arms):
            is_last = number == len(node.arms) - 1 and node.otherwise is None
            otherwise = end if is_last else self.label("else")
            self.branch(condition, otherwise, False)
            emit(body)
            if not is_last:
                self.emit(node, "jump", end)
                self.place(otherwise)
                self.depth = depth
        if node.otherwise is not None:
            emit(node.otherwise)
        self.place(end)

    def _tail(self, node: Node, emit: Callable[[Node], None], results: int) -> None:
        """Generate the tail of a function, with a return at the end of every branch."""
        if isinstance(node, tree.Block) and node.body and not node.is_jit:
            for child in node.body[:-1]:
                self.statement(child)
            self._tail(node.body[-1], emit, results)
        elif isinstance(node, tree.Choice):
            depth = self.depth
            for condition, body in node.arms:
                otherwise = self.label("else")
                self.branch(condition, otherwise, False)
                self._tail(body, emit, results)
                self.place(otherwise)
                self.depth = depth
            if node.otherwise is not None:
                self._tail(node.otherwise, emit, results)
            else:
                self.emit(node, "return", 0)
        else:
            emit(node)
            self.emit(node, "return", results)

    def _while(self, node: tree.While) -> None:
        top, test = self.label("top"), self.label("test")
        self.emit(node, "jump", test)
        self.place(top)
        for child in node.body:
            self.statement(child)
        self.place(test)
        self.branch(node.condition, top, True)

    def _logic(self, node: tree.Logic) -> None:
        """Generate the boolean as a number, for uses as a value."""
        false, end = self.label("false"), self.label("end")
        self.branch(node, false, False)
        self.constant(node, Type.I32, 1)
        self.emit(node, "jump", end)
        self.place(false)
        self.depth -= 1
        self.constant(node, Type.I32, 0)
        self.place(end)

    def _not(self, node: tree.Not) -> None:
        self.value(node.operand)
        self.emit(node, f"{number_type(node.operand.type)}.eqz")

    def _call(self, node: tree.Call) -> None:
        for argument in node.arguments:
            self.value(argument)
        if node.function.is_host:
            self._import(node.function)
        self.emit(node, "host" if node.function.is_host else "call", node.function.name)

    def _launch(self, node: tree.Launch) -> None:
        for argument in node.arguments:
            self.value(argument)
        for size in node.sizes:
            self.value(size)
        if len(node.sizes) > 1:
            self.skeletons.grid(node)
            return
        again, over = self.label("item"), self.label("over")
        self.emit(node, "launch.begin")
        self.place(again)
        self.emit(node, "launch.test")
        self.emit(node, "jump_unless", over)
        self.emit(node, "launch.item", node.function.name)
        self.emit(node, "call", node.function.name)
        self.emit(node, "jump", again)
        self.place(over)
        for _ in range(LAUNCH_WORDS + len(node.arguments)):
            self.emit(node, "drop")

    def _import(self, function: Function) -> None:
        result = default(function.result)
        results = () if result == NOTHING else (self.types.value(result),)
        parameters = tuple(self.types.value(p.type) for p in function.parameters)
        imported = HostImport(function.name, Signature(parameters, results))
        self.hosts.setdefault(function.name, imported)

    # Values

    def _literal(self, node: tree.Literal) -> None:
        type_ = number_type(node.type)
        bits = number_bits(node.number, type_)
        assert bits is not None, "inference has checked every literal"
        self.constant(node, type_, bits)

    def _get(self, node: tree.Get) -> None:
        self.access(node, node.variable, "get")

    def _set(self, node: tree.Set) -> None:
        self.value(node.value)
        self.access(node, node.variable, "set")

    def access(self, node: Node, variable: Variable, verb: str) -> None:
        """Get or set a variable."""
        self.emit(node, f"{'static' if variable.is_static else 'local'}.{verb}", variable.number)

    def _operation(self, node: tree.Operation) -> None:
        operator, operands = node.operator, node.operands
        type_ = number_type(operands[0].type)
        if operator.name == "~":
            self.value(operands[0])
            self.constant(node, type_, type_.mask)
            self.emit(node, operator.row(type_).mnemonic)
        elif len(operands) == 1 and operator.name in ("+", "*"):
            self.value(operands[0])
        elif len(operands) == 1 and operator.name == "-" and type_.is_float:
            self.value(operands[0])
            self.emit(node, f"{type_}.neg")
        elif len(operands) == 1 and operator.name in ("-", "/"):
            one = 0 if operator.name == "-" else _ONES[type_]
            self.constant(node, type_, one)
            self.value(operands[0])
            self.emit(node, operator.row(type_).mnemonic)
        elif operator.maximum is not None:
            for operand in operands:
                self.value(operand)
            self.emit(node, operator.row(type_).mnemonic)
        else:
            self.value(operands[0])
            for operand in operands[1:]:
                self.value(operand)
                self.emit(node, operator.row(type_).mnemonic)

    def _direct(self, node: tree.Direct) -> None:
        for operand in node.operands:
            self.value(operand)
        self.emit(node, node.row.mnemonic, node.immediate)

    def _convert(self, node: tree.Convert) -> None:
        self.value(node.operand)
        row = converter(node.to, number_type(node.operand.type))
        if row is not None:
            self.emit(node, row.mnemonic)

    # Output

    def _print(self, node: tree.Print) -> None:
        for value in node.values:
            if isinstance(default(value.type), ArrayOf):
                self.objects.write(node, value, has_line_end=True)
                continue
            self.value(value)
            type_ = number_type(value.type)
            self.host(node, f"print_{type_}", type_)

    def _write_byte(self, node: tree.WriteByte) -> None:
        self.value(node.value)
        self.host(node, "write_byte", Type.I32)


_ONES = {
    Type.I32: 1,
    Type.I64: 1,
    Type.F32: 0x3F80_0000,
    Type.F64: 0x3FF0_0000_0000_0000,
}
