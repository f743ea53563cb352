# SPDX-License-Identifier: Apache-2.0
"""Preparation of a program by a backend. Backends are not trusted: their exceptions and invalid
results become errors that name them."""

from __future__ import annotations

from collections.abc import Callable

from ferryvm.backend import (
    Artifact,
    BackendError,
    Forcing,
    Interpreter,
    PreparationError,
    RefusalError,
)
from ferryvm.failure import kind_of, shown, text_of
from ferryvm.foreign import ForeignError, contained
from ferryvm.machine.host_stack import NotYetError, with_headroom
from ferryvm.machine.python_call import CallForm
from ferryvm.verify import Verified


def prepare(
    backend: Interpreter,
    program: Verified,
    forcing: frozenset[Forcing] = frozenset(),
    role: str = "backend",
) -> Artifact:
    """A backend's artifact of a program.

    `role`: the backend's role, for messages. Raises RefusalError if it refuses the program, and
    PreparationError if it fails.
    """
    who = f"{role} {backend.name!r}"
    try:
        with contained(f"{who} looks at the program", BackendError):
            reason = backend.accepts(program)
    except ForeignError as error:
        raise PreparationError(backend.name, str(error)) from error
    if reason is not None:
        from ferryvm.engine.hook import checked_reason  # few are refused

        why = checked_reason(reason, f"{who}: its accepts")
        raise RefusalError(f"{who} refuses the program: {why}")
    missing = sorted(kind.value for kind in forcing - backend.capabilities.forcing)
    if missing:
        raise RefusalError(f"{who} has nothing to force: {', '.join(missing)}")
    try:
        with contained(f"{who} prepares the program", BackendError):
            artifact: object = with_headroom(
                lambda: (
                    backend.prepare_forced(program, forcing)
                    if forcing
                    else backend.prepare(program)
                )
            )
    except BackendError as error:
        raise RefusalError(text_of(error)) from error
    except ForeignError as error:
        raise PreparationError(backend.name, str(error)) from error
    if not isinstance(artifact, Artifact):
        raise PreparationError(backend.name, f"it returned {kind_of(artifact)}, not an Artifact")
    return artifact


def collector_of(backend: Interpreter, artifact: Artifact) -> tuple[int | None, str]:
    """The address of an artifact's native collector; None with the reason that there is none.
    Raises NotYetError."""
    return _address(backend, "collector", artifact.collector)


def item_writer_of(backend: Interpreter, artifact: Artifact) -> int | None:
    """The address of an artifact's native writer of suspended items; None if there is none. Raises
    NotYetError."""
    return _address(backend, "item writer", artifact.item_writer)[0]


def host_loop_of(backend: Interpreter, artifact: Artifact) -> int | None:
    """The address of an artifact's loop around host calls; None if there is none, or as long as it
    is made."""
    try:
        return _address(backend, "host loop", artifact.host_loop)[0]
    except NotYetError:
        return None


def python_caller_of(
    backend: Interpreter, artifact: Artifact, form: CallForm
) -> tuple[int | None, str]:
    """The address of an artifact's caller for a form of calls; None with the reason that there is
    none."""
    return _address(backend, "caller from Python", lambda: artifact.python_caller(form))


def _address(
    backend: Interpreter, what: str, ask: Callable[[], int | None]
) -> tuple[int | None, str]:
    try:
        with contained(
            f"backend {backend.name!r} is asked for a {what}", BackendError, NotYetError
        ):
            address: object = ask()
    except (BackendError, ForeignError) as error:
        return None, text_of(error)
    if address is None:
        return None, f"backend {backend.name!r} has no native {what}"
    if not isinstance(address, int) or address <= 0:
        return None, f"backend {backend.name!r} gave {shown(address)} as its {what}"
    return address, ""
