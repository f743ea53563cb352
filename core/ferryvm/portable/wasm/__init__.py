# SPDX-License-Identifier: Apache-2.0
"""The target `wasm`: a function in plain form as a WebAssembly module with a memory of its own."""
