# SPDX-License-Identifier: Apache-2.0
"""The definition of a Python function: source, free names, places of exceptions, refusals."""
