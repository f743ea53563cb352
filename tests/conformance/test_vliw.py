# SPDX-License-Identifier: Apache-2.0
"""The `vliw` backend under the conformance suite; golden cases in one dressing each."""

from ferryvm.testing.conformance import *

BACKEND = "vliw"
GOLDEN = "rotated"
