# SPDX-License-Identifier: Apache-2.0
"""The target `c`: a function in plain form as C11, with a header and a program that checks it."""
