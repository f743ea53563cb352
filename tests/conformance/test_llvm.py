# SPDX-License-Identifier: Apache-2.0
"""The `llvm` backend under the conformance suite."""

from ferryvm.testing.conformance import *

BACKEND = "llvm"
