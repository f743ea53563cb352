# SPDX-License-Identifier: Apache-2.0
"""The region IR: the input of compilers."""
