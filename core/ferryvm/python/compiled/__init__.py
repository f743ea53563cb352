# SPDX-License-Identifier: Apache-2.0
"""Compiled functions: the program for certain kinds of arguments, and the state where it
stopped."""
