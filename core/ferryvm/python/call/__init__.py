# SPDX-License-Identifier: Apache-2.0
"""Calls of Python functions: the version by the arguments, and CPython where compiled code
stopped."""
