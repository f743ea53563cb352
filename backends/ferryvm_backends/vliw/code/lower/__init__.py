# SPDX-License-Identifier: Apache-2.0
"""Instruction selection: from the region IR to operations of the machine.

body ─┬─> access, side_exit, call      which operations each lowers: `ferryvm.ir.rule`
      └─> emission                     the context that all of them append to
"""
