# SPDX-License-Identifier: Apache-2.0
"""Python functions: from their source to a program, for the kinds of arguments that they are called
with.

    source ── lower ──> graph ── version, body ──> ferryvm.build ──> Program ──> Instance
"""
