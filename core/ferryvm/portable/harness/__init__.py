# SPDX-License-Identifier: Apache-2.0
"""Harnesses that are the same for each export: they read the manifest. Nothing here imports
ferryvm."""
