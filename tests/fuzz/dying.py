# SPDX-License-Identifier: Apache-2.0
"""A campaign's child that a certain file kills, to see that the parent notices."""

from __future__ import annotations

import random
import signal

from .mutate import main, trial_file
from .seed import seeds
from .trial import Judge, Outcome

SEED, NUMBER = 1, 3
"""The trial whose file kills."""


class DyingJudge(Judge):
    """Dies as a fault in native code would end it."""

    def judge(self, rng: random.Random, content: bytes) -> Outcome:
        if content == trial_file(SEED, NUMBER, seeds())[2]:
            signal.raise_signal(signal.SIGSEGV)  # in this thread, so that it gets no further
        return super().judge(rng, content)


if __name__ == "__main__":
    main(DyingJudge)
