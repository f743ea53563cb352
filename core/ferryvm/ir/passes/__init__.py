# SPDX-License-Identifier: Apache-2.0
"""Passes over the region IR: each is a function that changes a body in place.

What each one needs and keeps stands in its module; `optimise` runs them in a good order.
"""

from ferryvm.ir.passes.pipeline import optimise

__all__ = ["optimise"]
