# SPDX-License-Identifier: Apache-2.0
"""The interpreters under the conformance suite; `ferry conformance` has each golden case in every
dressing."""

from ferryvm.testing.conformance import *

BACKEND = ["reference", "switch", "threaded"]
GOLDEN = "rotated"
