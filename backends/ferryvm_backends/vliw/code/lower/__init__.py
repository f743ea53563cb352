# SPDX-License-Identifier: Apache-2.0
"""Instruction selection: from the region IR to operations of the machine.

emission ─> leaving ─> calling ─> body    each class extends the one before
"""
