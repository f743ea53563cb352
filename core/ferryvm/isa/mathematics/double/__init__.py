# SPDX-License-Identifier: Apache-2.0
"""Meanings of the functions of f64: errors below one unit in the last place."""
