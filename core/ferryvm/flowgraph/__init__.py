# SPDX-License-Identifier: Apache-2.0
"""Algorithms on flow graphs: orders, components, dominators, natural loops, reducibility.

    traversal ─> dominance ─> loop          component ─> reducible

A flow graph is a directed graph with one entry from which every node is reached. Nodes are numbers
and edges are lists of numbers, so the graphs of bytecode (`ferryvm.region.graph`) and those of the
region IR (`ferryvm.ir.control_flow_graph`) share these functions. Nothing here knows what a node
is.
"""
