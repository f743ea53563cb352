# SPDX-License-Identifier: Apache-2.0
"""The `reference` backend under the conformance suite."""

from ferryvm.testing.conformance import *

BACKEND = "reference"
