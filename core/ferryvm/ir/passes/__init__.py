# SPDX-License-Identifier: Apache-2.0
"""Passes over the region IR: each is a function that changes a body in place.

Each module says what its pass requires and preserves; `optimise` runs them in order.
"""

from ferryvm.ir.passes.pipeline import optimise

__all__ = ["optimise"]
