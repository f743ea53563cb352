# SPDX-License-Identifier: Apache-2.0
"""The `opencl` backend under the conformance suite; golden cases in programs that they share, which
take long to build."""

from ferryvm.testing.conformance import *

BACKEND = "opencl"
GOLDEN = "together"
