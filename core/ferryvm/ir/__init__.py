# SPDX-License-Identifier: Apache-2.0
"""The region IR: what compilers are given."""
