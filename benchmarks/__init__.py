# SPDX-License-Identifier: Apache-2.0
"""Benchmarks: programs written for several interpreters and compilers, and the harness for them.

    python -m benchmarks interpreters     nine programs on every interpreter, interleaved
    python -m benchmarks scalar           the same, larger, on every compiler
    python -m benchmarks mixed            whole runs: the default policy against one backend alone
    python -m benchmarks transfer         from an interpreter to native code and back
    python -m benchmarks compile          compiling the loop, and having it from the cache
    python -m benchmarks startup          a trivial `ferry run` over the imports of LLVM
    python -m benchmarks load             verifier and loader on 1 MB of code
    python -m benchmarks interrupt        how long Ctrl-C takes

docs/benchmarks.md says what is measured and how to read it.
"""
