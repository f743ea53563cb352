# SPDX-License-Identifier: Apache-2.0
"""The target `spirv`: a kernel in SPIR-V for devices of OpenCL that take it."""
