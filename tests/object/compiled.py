# SPDX-License-Identifier: Apache-2.0
"""Engines that have one backend compile all of a program, and leave no trace in the cache."""

from __future__ import annotations

import functools
import shutil

import pytest

from ferryvm.engine import Engine
from ferryvm.machine.memory import Limits
from ferryvm.policy import Choice, Options, Policy, Profile, Rule
from ferryvm.registry import Registry
from ferryvm_backends.opencl import OpenClBackend

from ..double.registry import plugin
from ..faults.compilers.search import register

INTERPRETERS = ("reference", "switch", "threaded")

CC = pytest.param(
    "cc",
    marks=pytest.mark.skipif(
        not any(shutil.which(name) for name in ("cc", "gcc", "clang")),
        reason="there is no C compiler here",
    ),
)
"""The backend `cc` as a parameter."""

COPIED = "copied"
"""The name of a backend whose kernels run in copied memory."""


KERNELS = ("opencl", COPIED)
"""The backend of kernels, in the host's memory and in copied memory."""


@functools.cache
def _registry() -> Registry:
    registry = register(Registry())
    backend = OpenClBackend(wraps=False)
    backend.name = COPIED
    registry.register(plugin(backend), COPIED)
    return registry


def engine(backend: str, limits: Limits, level: int = 3) -> Engine:
    """An engine with a backend; a compiler compiles at `level`, and where its code has left for an
    allocation, control is soon in its code again."""
    if backend in INTERPRETERS:
        return Engine(backend, limits=limits)
    options = Options(optimize=level, background=False, required=True, cache=False)
    rules = (Rule(backends=(Choice(backend, options),)),)
    soon = Profile(loop_threshold=3, function_threshold=3)
    policy = Policy(rules=rules, whole_program=True, profile=soon)
    return Engine(policy=policy, limits=limits, registry=_registry())
