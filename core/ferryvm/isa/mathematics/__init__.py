# SPDX-License-Identifier: Apache-2.0
"""Meanings of mathematical functions, in pure operations of the emitter."""
