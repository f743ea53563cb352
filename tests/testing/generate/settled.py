# SPDX-License-Identifier: Apache-2.0
"""Weights with which random programs stay as they are when instructions are added.

An instruction of weight 0 is not drawn, so it moves no other choice. Tests of shares and digests
use these weights: a new instruction that computes changes which programs a seed has, and a share of
some hundred programs differs from seed to seed.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from ferryvm.testing.generate.catalogue import COMPUTING
from ferryvm.testing.generate.weights import Weights, default

NAMES = frozenset(Path(__file__).with_name("settled.txt").read_text(encoding="utf-8").split())
"""The mnemonics of the instructions that compute and are drawn."""


def settled(weights: Weights) -> Weights:
    """Weights with which the instructions that are not settled are never drawn."""
    others = {row.mnemonic: 0.0 for row in COMPUTING if row.mnemonic not in NAMES}
    return dataclasses.replace(weights, instruction={**weights.instruction, **others})


SETTLED = settled(default())
