# SPDX-License-Identifier: Apache-2.0
"""Machines as data: the resources of a processor, and the files that describe it."""
