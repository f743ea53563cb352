# SPDX-License-Identifier: Apache-2.0
"""A place to install plugins in, as for tests of the registry."""

from ..registry.conftest import site

__all__ = ["site"]
