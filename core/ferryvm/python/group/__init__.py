# SPDX-License-Identifier: Apache-2.0
"""Kernels in Python: launches of items in groups."""
