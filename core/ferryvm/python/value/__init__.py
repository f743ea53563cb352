# SPDX-License-Identifier: Apache-2.0
"""Values: their kinds, as far as code knows them, and Python's objects as values of programs and
back."""
