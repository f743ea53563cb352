# SPDX-License-Identifier: Apache-2.0
"""Memoised analyses: each runs once for a program.

Results are dropped with the program, so they must not refer to its `Verified`: a weak dictionary
never drops a value that refers to its own key.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Hashable
from typing import Concatenate, ParamSpec, TypeVar

from ferryvm.verify import Verified

P = ParamSpec("P")
R = TypeVar("R")

_LOCK = threading.RLock()
"""Background compilations use analyses, too, and all threads must see the same objects."""


def memoised(
    analysis: Callable[Concatenate[Verified, P], R],
) -> Callable[Concatenate[Verified, P], R]:
    """The analysis as a function that returns the same object for the same program and
    arguments."""
    programs: weakref.WeakKeyDictionary[Verified, dict[Hashable, R]] = weakref.WeakKeyDictionary()

    @functools.wraps(analysis)
    def look_up(verified: Verified, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with _LOCK:
            results = programs.setdefault(verified, {})
            if args not in results:
                results[args] = analysis(verified, *args, **kwargs)
            return results[args]

    return look_up
