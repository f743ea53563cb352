# SPDX-License-Identifier: Apache-2.0
"""Kernels whose items cooperate in groups, against other implementations of OpenCL."""
