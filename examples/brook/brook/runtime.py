# SPDX-License-Identifier: Apache-2.0
"""Functions that every program has at hand, in instructions: strings are arrays of bytes, UTF-8."""

from __future__ import annotations

from ferryvm.build import I32, I64, U8_ARRAY, Function, Host, Local, Program, Type


class Runtime:
    """The functions of a program, each made when it is first needed."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._made: dict[str, Function] = {}
        self._hosts: dict[str, Host] = {}

    def host(self, name: str, parameter: Type) -> Host:
        """A host function of one parameter, without a result."""
        if name not in self._hosts:
            self._hosts[name] = self.program.host(name, [parameter])
        return self._hosts[name]

    def __getattr__(self, name: str) -> Function:
        """The function of that name, by the method that makes it."""
        make = getattr(type(self), f"_make_{name}", None)
        if make is None:
            raise AttributeError(name)
        if name not in self._made:
            self._made[name] = make(self)
        return self._made[name]

    def _make_print_str(self) -> Function:
        """(text): print it, and a line end."""
        f = self.program.function("brook.print_str", {"text": U8_ARRAY})
        at = f.local("at", I64)
        write = self.host("write_byte", I32)
        with f.block() as done, f.loop() as again:
            f.local_get(at)
            f.local_get("text")
            f.array_length()
            f.i64_ge_u()
            f.br_if(done)
            f.local_get("text")
            f.local_get(at)
            f.array_get_u8()
            f.host(write)
            _add(f, at, 1)
            f.br(again)
        f.i32_const(ord("\n"))
        f.host(write)
        return f

    def _make_join(self) -> Function:
        """(left, right): a new string of both."""
        parameters = {"left": U8_ARRAY, "right": U8_ARRAY}
        f = self.program.function("brook.join", parameters, [U8_ARRAY])
        both, start = f.local("both", U8_ARRAY), f.local("start", I64)
        for side in ("left", "right"):
            f.local_get(side)
            f.array_length()
        f.i64_add()
        f.array_new_default_u8()
        f.local_set(both)
        for side in ("left", "right"):
            f.local_get(both)
            f.local_get(start)
            f.local_get(side)
            f.i64_const(0)
            f.local_get(side)
            f.array_length()
            f.array_copy_u8()
            f.local_get(side)
            f.array_length()
            f.local_set(start)
        f.local_get(both)
        return f

    def _make_same(self) -> Function:
        """(left, right): 1 if both strings have the same bytes, else 0."""
        f = self.program.function("brook.same", {"left": U8_ARRAY, "right": U8_ARRAY}, [I32])
        at = f.local("at", I64)
        with f.block() as different:
            f.local_get("left")
            f.array_length()
            f.local_get("right")
            f.array_length()
            f.i64_ne()
            f.br_if(different)
            with f.loop() as again:
                f.local_get(at)
                f.local_get("left")
                f.array_length()
                f.i64_eq()
                with f.if_():
                    f.i32_const(1)
                    f.return_()
                for side in ("left", "right"):
                    f.local_get(side)
                    f.local_get(at)
                    f.array_get_u8()
                f.i32_ne()
                f.br_if(different)
                _add(f, at, 1)
                f.br(again)
        f.i32_const(0)
        return f


def _add(f: Function, local: Local, number: int) -> None:
    f.local_get(local)
    f.i64_const(number)
    f.i64_add()
    f.local_set(local)
