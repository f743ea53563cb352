# SPDX-License-Identifier: Apache-2.0
"""The `llvm` backend under the conformance suite; golden cases in programs that they share, which
take long to build."""

from ferryvm.testing.conformance import *

BACKEND = "llvm"
GOLDEN = "together"
