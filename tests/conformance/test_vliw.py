# SPDX-License-Identifier: Apache-2.0
"""The `vliw` backend under the conformance suite; a program of an instruction takes long to compile."""

from ferryvm.testing.conformance import *

BACKEND = "vliw"
EVERY = 10
