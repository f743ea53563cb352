# SPDX-License-Identifier: Apache-2.0
"""Host functions of dice.skiff: dice that fall alike after the same seed."""

import random

from ferryvm import host, i64

_dice = random.Random()


@host(name="seed-dice")
def seed_dice(seed: i64) -> None:
    """Begin the sequence of a seed."""
    _dice.seed(seed)


@host(replayable=True)
def roll(sides: i64) -> i64:
    """Roll a die; the result is from 1 to the number of its sides."""
    if sides < 1:
        raise ValueError(f"a die has at least one side, found {sides}")
    return 1 + int(_dice.random() * sides)


hosts = [seed_dice, roll]
