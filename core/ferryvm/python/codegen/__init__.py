# SPDX-License-Identifier: Apache-2.0
"""Code for statements and expressions, by the kinds that variables have."""
