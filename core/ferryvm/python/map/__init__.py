# SPDX-License-Identifier: Apache-2.0
"""Maps, reductions and scans of Python functions over arrays."""
