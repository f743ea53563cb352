# SPDX-License-Identifier: Apache-2.0
"""Running programs of a machine, cycle by cycle."""
