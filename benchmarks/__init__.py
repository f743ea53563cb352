# SPDX-License-Identifier: Apache-2.0
"""Benchmarks: programs written for several interpreters, and the harness that times them.

    python -m benchmarks interpreters     nine programs on every peer, interleaved
    python -m benchmarks startup          what a trivial `ferry run` costs over its imports
    python -m benchmarks load             verifier and loader on 1 MB of code

docs/benchmarks.md says what is measured and how to read it.
"""
