# SPDX-License-Identifier: Apache-2.0
"""From the syntax tree of a function to its control-flow graph, and analyses of the graph."""
