# SPDX-License-Identifier: Apache-2.0
"""Correctly rounded mathematical functions of f32 (IEEE 754-2019, clause 9.2).

Each meaning computes in f64 with an error of about 2^-53 and rounds once to f32. That the result is
the f32 nearest to the exact one was tested for each of the 2^32 operands (see docs/math.md); no
error bound is proved otherwise.
"""
