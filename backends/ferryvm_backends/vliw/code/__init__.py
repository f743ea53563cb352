# SPDX-License-Identifier: Apache-2.0
"""Code generation: from the region IR to bundles.

Module ─ if_conversion, lower ─> MachineCode ─ modulo, unroll ─> MachineCode
       ─ register_file, schedule ─> cycles ─ live_range, register_allocation ─> registers
       ─ encode ─> Program
"""
