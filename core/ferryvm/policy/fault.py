# SPDX-License-Identifier: Apache-2.0
"""The error of an unusable policy, in a module of its own because a run may not need the
checker."""

from __future__ import annotations

from ferryvm.toml.fault import DocumentError


class PolicyError(DocumentError):
    """A policy that cannot be used, with all faults of its file."""
