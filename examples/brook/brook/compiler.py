# SPDX-License-Identifier: Apache-2.0
"""Statements and functions to instructions."""

from __future__ import annotations

from brook import tree
from brook.closure import Scope, Variable
from brook.expression import Expressions, signature_of
from brook.unit import Unit
from ferryvm.build import F64, I64, U8_ARRAY, Function, Local, Static
from ferryvm.source import SourceText


def compile_unit(
    unit: Unit, statements: list[tree.Node], source: SourceText, shows: bool = False
) -> Function:
    """The function of statements of the top level; those that they define join the unit.

    `shows`: it prints the value of the last one, if it has one. Faults are noted in `source`. The
    top level comes first, since functions may use its variables; it may call them all.
    """
    functions = []
    for each in statements:
        if isinstance(each, tree.Function) and each.name is not None:
            compiler = Compiler(
                unit, source, unit.name(each.name), each, Scope(unit.globals, unit.types)
            )
            unit.globals[each.name] = Variable(each.kind, compiler.f)
            functions.append((compiler, each))
    rest = [each for each in statements if not (isinstance(each, tree.Function) and each.name)]
    whole = tree.Function((1, 1), None, [], tree.NOTHING, rest)
    main = Compiler(unit, source, f"top level of {source.file}", whole, None)
    main.run(rest, shows)
    for compiler, each in functions:
        compiler.run(each.body)
    return main.f


class Compiler(Expressions):
    """The compiler of one function; `scope` is None for the statements of the top level."""

    def __init__(
        self, unit: Unit, source: SourceText, name: str, tree: tree.Function, scope: Scope | None
    ) -> None:
        self.unit, self.source, self.result = unit, source, tree.result
        self.is_top = scope is None
        self.scope = scope or Scope(unit.globals, unit.types)
        if self.is_top:
            self.f = unit.program.function(name)
            return
        signature = signature_of(tree.kind, unit.types)
        self.f = unit.program.function(name, signature.parameters, signature.results)
        self.record, *arguments = self.f.parameters
        for (parameter, kind), local in zip(tree.parameters, arguments, strict=True):
            self.scope.blocks[0][parameter] = Variable(kind, local)

    def run(self, body: list[tree.Node], shows: bool = False) -> None:
        """Compile a body. The first fault ends it: code after it would stand on sand."""
        try:
            for number, statement in enumerate(body, start=1):
                is_last = shows and number == len(body)
                self.show(statement) if is_last else self.statement(statement)
            if self.f.is_reachable and self.result != tree.NOTHING:
                place = body[-1].place if body else (1, 1)
                raise tree.BrookError(place, "this function ends without a return")
        except tree.BrookError as error:
            self.source.fault(*error.place, str(error), error.length)

    # --- statements -------------------------------------------------------------------------

    def block(self, statements: list[tree.Node]) -> None:
        self.scope.blocks.append({})
        for statement in statements:
            self.statement(statement)
        self.scope.blocks.pop()

    def show(self, node: tree.Node) -> None:
        """The last statement of an input: print its value, if it has one."""
        if isinstance(
            node, tree.Let | tree.Assign | tree.If | tree.While | tree.Return | tree.Print
        ):
            self.statement(node)
            return
        kind = self.value(node, may_be_nothing=True)
        if kind in (tree.INT, tree.FLOAT, tree.BOOL, tree.STR):
            self.print(kind, node.place)
        elif kind != tree.NOTHING:
            self.f.drop()

    def statement(self, node: tree.Node) -> None:
        self.at(node.place)
        match node:
            case tree.Let():
                self.let(node)
            case tree.Assign(target=tree.Name() as target):
                variable = self.variable(target)
                self.expect(node.value, variable.kind)
                self.store(target, variable)
            case tree.Assign(target=tree.Index() as target):
                kind = self.element(target)
                self.expect(node.value, kind.parts[0])
                self.at(node.place)
                self.on_array("set", kind)
            case tree.If():
                self.expect(node.condition, tree.BOOL)
                with self.f.if_():
                    self.block(node.then)
                    if node.otherwise:
                        self.f.else_()
                        self.block(node.otherwise)
            case tree.While():
                with self.f.block() as done, self.f.loop() as again:
                    self.expect(node.condition, tree.BOOL)
                    self.f.i32_eqz()
                    self.f.br_if(done)
                    self.block(node.body)
                    self.f.br(again)
            case tree.Return():
                self.leave(node)
            case tree.Print():
                self.print(self.value(node.value), node.place)
            case _:
                if self.value(node, may_be_nothing=True) != tree.NOTHING:
                    self.f.drop()

    def let(self, node: tree.Let) -> None:
        kind = self.value(node.value)
        type_ = self.unit.types.of(kind)
        if self.is_top and len(self.scope.blocks) == 1:
            variable = Variable(kind, self.unit.program.static(node.name, type_))
            self.unit.globals[node.name] = variable
        else:
            variable = Variable(kind, self.f.local(None, type_))
            self.scope.blocks[-1][node.name] = variable
        self.store(node, variable)

    def store(self, node: tree.Node, variable: Variable) -> None:
        home = variable.home
        if isinstance(home, Local):
            self.f.local_set(home)
        elif isinstance(home, Static):
            self.f.static_set(home)
        else:
            what = "a function" if isinstance(home, Function) else "captured, and a copy"
            raise tree.BrookError(node.place, f"this variable cannot be assigned: it is {what}")

    def leave(self, node: tree.Return) -> None:
        if self.is_top:
            raise tree.BrookError(node.place, "return stands outside of a function", len("return"))
        if node.value is not None:
            self.expect(node.value, self.result)
        elif self.result != tree.NOTHING:
            raise tree.BrookError(
                node.place, f"expected a value of type {self.result}", len("return")
            )
        self.f.return_()

    def print(self, kind: tree.Kind, place: tree.Place) -> None:
        """Print the value on the stack, which is of that type."""
        f, runtime = self.f, self.unit.runtime
        self.at(place)
        if kind == tree.BOOL:
            with f.if_(results=[U8_ARRAY]):
                self.text("true")
                f.else_()
                self.text("false")
        if kind in (tree.BOOL, tree.STR):
            f.call(runtime.print_str)
        elif kind in (tree.INT, tree.FLOAT):
            name = "print_f64" if kind == tree.FLOAT else "print_i64"
            f.host(runtime.host(name, F64 if kind == tree.FLOAT else I64))
        else:
            raise tree.BrookError(place, f"print takes int, float, bool or str, found {kind}")

    def closure(self, node: tree.Function) -> tree.Kind:
        inner = Scope(self.unit.globals, self.unit.types, self.scope)
        name = "fun at {}:{}:{}".format(self.source.file, *node.place)
        compiler = Compiler(self.unit, self.source, name, node, inner)
        compiler.run(node.body)
        self.at(node.place)
        self.make(compiler.f, inner)
        return node.kind
