# SPDX-License-Identifier: Apache-2.0
"""A program with structs and arrays that tests call with references, and its host functions."""

from __future__ import annotations

from typing import Annotated

from ferryvm import Engine, HostFunction, Instance, StructView, assemble, host
from ferryvm.machine.object_memory import ObjectMemory

BACKENDS = ("reference", "switch", "threaded", "llvm")

Node = Annotated[StructView | None, "node"]

NODES = """
.struct node value i64 next node
.struct leaf extends node weight f64 any anyref numbers f32[]
.static kept node
.host visit (node) -> (node)
.host all (anyref i31ref node[] arrayref) -> (anyref)
.export visit_list
.export give_all
.export same
.export node
.export kept
.function start
    halt
.function list (count i64) -> (node)
    .local made node
:more
    local.get count
    i64.eqz
    jump_if done
    local.get count
    local.get made
    struct.new node
    local.set made
    local.get count
    i64.const 1
    i64.sub
    local.set count
    jump more
:done
    local.get made
    return
.function visit_list (count i64) -> (node)
    local.get count
    call list
    host visit
    return
.function give_all -> (anyref)
    i64.const 1
    call list
    i32.const -5
    ref.i31
    i64.const 2
    array.new_default_ref node[]
    i64.const 2
    array.new_default_f32
    host all
    return
.function same (anyref) -> (anyref)
    local.get 0
    return
.function node (i64 node) -> (node)
    local.get 0
    local.get 1
    f64.const 2.5
    i32.const 7
    ref.i31
    i64.const 3
    array.new_default_f32
    struct.new leaf
    return
.function kept (node) -> (node)
    static.get kept
    local.get 0
    static.set kept
    return
"""


def objects(one: Instance) -> ObjectMemory:
    found = one.idle_execution().machine.objects
    assert found is not None
    return found


def nodes(backend: str = "threaded", *hosts: HostFunction) -> Instance:
    offered = {"visit": visit, "all": give} | {one.name: one for one in hosts}
    return Engine(backend).instantiate(assemble(NODES), hosts=offered)


@host
def visit(first: Node) -> Node:
    return first


@host(name="all", signature="(anyref i31ref node[] arrayref) -> (anyref)")
def give(*values: object) -> object:
    return values[0]
