# SPDX-License-Identifier: Apache-2.0
"""The target `llvm`: a function in plain form as LLVM IR in text, for LLVM 15 and later."""
