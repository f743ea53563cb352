# SPDX-License-Identifier: Apache-2.0
"""Functions that compiled code has in a form of its own: in the subset of Python, or as
instructions."""
