# SPDX-License-Identifier: Apache-2.0
"""The target `opencl`: a kernel in OpenCL C 1.2, with harnesses in C and Python."""
