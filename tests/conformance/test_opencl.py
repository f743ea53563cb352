# SPDX-License-Identifier: Apache-2.0
"""The `opencl` backend under the conformance suite; a kernel of an instruction takes long to build."""

from ferryvm.testing.conformance import *

BACKEND = "opencl"
EVERY = 20
