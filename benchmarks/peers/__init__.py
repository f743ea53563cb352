# SPDX-License-Identifier: Apache-2.0
"""Who takes part: one module a kind of peer, `peer.py` says what a peer is."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.peers.bytecode import BytecodePeer
from benchmarks.peers.cpython import CPythonPeer
from benchmarks.peers.ferry import MIXED, FerryPeer, FerryProcess, ListingPeer
from benchmarks.peers.lua import Lua54Peer, LuaJitPeer
from benchmarks.peers.native import HOST, NativePeer
from benchmarks.peers.njit import NumbaPeer
from benchmarks.peers.peer import Peer
from benchmarks.peers.tracing import LuaJitCompilerPeer, NodePeer, PyPyPeer
from benchmarks.peers.wasm import WasmPeer

NOT_DEFAULT = ("reference",)
"""Peers that take part only if they are named."""


def interpreters(twin_globals: bool = False) -> dict[str, Peer]:
    """Every peer of the interpreters by name; `twin_globals` builds the loop's C twins with
    variables in memory."""
    return _by_name(
        NativePeer("gcc", ["-DTWIN_GLOBALS"] if twin_globals else []),
        FerryPeer("threaded"),
        ListingPeer("threaded"),
        FerryPeer("switch"),
        FerryPeer("reference"),
        BytecodePeer("goto", "computed goto"),
        BytecodePeer("switch", "switch"),
        WasmPeer(twin_globals),
        LuaJitPeer(),
        Lua54Peer(),
        CPythonPeer(),
    )


def compilers(numba: str | None, environment: Mapping[str, str]) -> dict[str, Peer]:
    """Every peer of the compilers by name.

    `numba`: a Python that has it; `environment`: variables for ferryvm's processes.
    """
    return _by_name(
        NativePeer("gcc", [HOST]),
        NativePeer("clang", [HOST]),
        FerryProcess("llvm", environment),
        FerryProcess(MIXED, environment),
        FerryProcess("threaded", environment),
        FerryProcess("switch", environment),
        LuaJitCompilerPeer(),
        PyPyPeer(),
        NumbaPeer(numba),
        NodePeer(),
    )


def _by_name(*peers: Peer) -> dict[str, Peer]:
    return {peer.name: peer for peer in peers}
