# SPDX-License-Identifier: Apache-2.0
"""The target `ptx`: a kernel for graphics processors of NVIDIA, with a harness for CUDA's
driver."""
