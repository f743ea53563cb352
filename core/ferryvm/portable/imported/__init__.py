# SPDX-License-Identifier: Apache-2.0
"""Imported kernels: a folder with code and a manifest becomes a function of Python and of programs.

    manifest.json ─ description ─┐
    code, vectors ─ digests ─────┴─ loader of the target ─> a call ─ proof in a child ─> ImportedKernel

The folder is one that ferryvm has exported, or one whose manifest was written by hand. Golden
vectors are tried before the code is loaded into this process. docs/export.md is the manual,
docs/decisions/2026-11-26-import.md has the reasons.
"""
