# SPDX-License-Identifier: Apache-2.0
"""From the region IR to bundles.

Module ─ convert, lower ─> Code ─ modulo, unroll ─> Code ─ bank, schedule ─> cycles ─ span, allocate ─> registers ─ encode ─> Program
"""
