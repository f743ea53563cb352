# SPDX-License-Identifier: Apache-2.0
"""From the region IR to bundles.

Module ─ lower ─> Code ─ bank ─> Code ─ schedule ─> cycles ─ allocate ─> registers ─ encode ─> Program
"""
