# SPDX-License-Identifier: Apache-2.0
"""Who takes part: one module a kind of peer, `peer.py` says what a peer is."""

from __future__ import annotations

from benchmarks.peers.bytecode import BytecodePeer
from benchmarks.peers.cpython import CPythonPeer
from benchmarks.peers.ferry import FerryPeer
from benchmarks.peers.lua import Lua54Peer, LuaJitPeer
from benchmarks.peers.native import NativePeer
from benchmarks.peers.peer import Peer
from benchmarks.peers.wasm import WasmPeer

DEFAULT = (
    "gcc",
    "threaded",
    "switch",
    "cpp-goto",
    "cpp-switch",
    "wasm3",
    "luajit",
    "lua",
    "cpython",
)
"""Peers that take part unless others are named."""


def all_peers(twin_globals: bool = False) -> dict[str, Peer]:
    """Every peer by name; `twin_globals` builds the loop's C twins with variables in memory."""
    peers: list[Peer] = [
        NativePeer(twin_globals),
        FerryPeer("threaded"),
        FerryPeer("switch"),
        FerryPeer("reference"),
        BytecodePeer("goto", "computed goto"),
        BytecodePeer("switch", "switch"),
        WasmPeer(twin_globals),
        LuaJitPeer(),
        Lua54Peer(),
        CPythonPeer(),
    ]
    return {peer.name: peer for peer in peers}
