# SPDX-License-Identifier: Apache-2.0
"""Whole programs on native code that leaves no trace in the cache."""

from __future__ import annotations

from ferryvm.policy import Choice, Options, Policy, Rule

OPTIONS = Options(optimize=3, background=False, required=True, cache=False)

COMPILED = Policy(rules=(Rule(backends=(Choice("llvm", OPTIONS),)),), whole_program=True)
"""What `--backend llvm` is, but for the cache: that does not tell one poll budget from another, and
who is interrupted while code is compiled would have it stored during another test."""
