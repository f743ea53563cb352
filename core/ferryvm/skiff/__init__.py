# SPDX-License-Identifier: Apache-2.0
"""Skiff, a small imperative language in s-expressions (docs/skiff.md is its reference)."""

from ferryvm.skiff.reader import is_complete
from ferryvm.skiff.session import Session, compile, parse_listing

__all__ = ["Session", "compile", "is_complete", "parse_listing"]
