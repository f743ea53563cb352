# SPDX-License-Identifier: Apache-2.0
"""The backends of the tree under the conformance suite, in one module: case by case, so that the
states that are expected of all of them are computed once. Golden cases are in programs that they
share where these take long to build; `ferry conformance` has each in every dressing."""

from ferryvm.testing.conformance import *

BACKEND = ["reference", "switch", "threaded", "llvm", "opencl", "vliw"]
GOLDEN = {
    "reference": "rotated",
    "switch": "rotated",
    "threaded": "rotated",
    "llvm": "together",
    "opencl": "together",
    "vliw": "rotated",
}
