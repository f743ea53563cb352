# SPDX-License-Identifier: Apache-2.0
"""Machines as data: what a processor has, and the files that describe it."""
