# SPDX-License-Identifier: Apache-2.0
"""The error of a policy that cannot be used; apart from the checker, which a run may not need."""

from __future__ import annotations

from ferryvm.toml.fault import DocumentError


class PolicyError(DocumentError):
    """A policy that cannot be used, with all faults of its file."""
