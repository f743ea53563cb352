# SPDX-License-Identifier: Apache-2.0
"""The cache key of a region's code: a digest of everything that it depends on."""

from __future__ import annotations

import functools

from ferryvm import cache
from ferryvm.backend import Options
from ferryvm.compiler import code_facts
from ferryvm.region.region import Region
from ferryvm_backends._llvm.native import key


@functools.cache
def _versions() -> str:
    return key(__package__, "ferryvm.compiler", "ferryvm.ir", "ferryvm.region")


def region_key(region: Region, options: Options) -> str:
    """The key of a region's code; another program, place, option, version or processor has
    another."""
    return cache.key([_versions(), *code_facts(region, options)])
