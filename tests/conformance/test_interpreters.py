# SPDX-License-Identifier: Apache-2.0
"""The interpreters under the conformance suite."""

from ferryvm.testing.conformance import *

BACKEND = ["reference", "switch", "threaded"]
