# SPDX-License-Identifier: Apache-2.0
"""The objects that a region may access, by type."""

from __future__ import annotations

import ferryvm
from ferryvm.region.object_access import NO_OBJECTS, object_access
from ferryvm.region.region import region
from ferryvm.verify import verify

PROGRAM = """
.struct base key i64
.struct child extends base value f64
.struct other key i64
.function main
    halt
.function numbers (n i64) -> i64
    local.get n
    i64.const 9
    local.get n
    i64.const 4
    array.index
    return
.function copy (a f64[] b f64[] l i32[])
    local.get a
    i64.const 0
    local.get b
    i64.const 0
    local.get l
    array.length
    array.copy_f64
    return
.function key (p base) -> i64
    local.get p
    struct.get base.key
    return
.function set (p child q child[])
    local.get p
    f64.const 1
    struct.set child.value
    local.get q
    i64.const 0
    local.get p
    array.set_ref child[]
    local.get p
    call key
    drop
    return
.function only_set (p child)
    local.get p
    f64.const 1
    struct.set child.value
    return
.function make -> u8[]
    i64.const 3
    array.new_default_u8
    return
"""


def test_a_region_accesses_what_its_instructions_and_callees_do() -> None:
    verified = verify(ferryvm.assemble(PROGRAM))
    number = {reference.name: reference.number for reference in verified.types.references}

    def access(name: str) -> tuple[set[str], set[str], bool]:
        found = object_access(region(verified, name))
        assert found.any
        read, written = (
            {each for each, n in number.items() if n in types}
            for types in (found.read, found.written)
        )
        return read, written, found.makes

    assert object_access(region(verified, "numbers")) == NO_OBJECTS
    assert access("copy") == ({"f64[]"}, {"f64[]"}, False)
    assert access("key") == ({"base", "child"}, set(), False)
    assert access("set") == ({"base", "child"}, {"child", "child[]"}, False)
    assert access("only_set") == (set(), {"child"}, False)
    assert access("make") == (set(), {"u8[]"}, True)
