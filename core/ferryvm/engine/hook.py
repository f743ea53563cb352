# SPDX-License-Identifier: Apache-2.0
"""Plugins in the engine: notification of events, their facts for policies, checks of compilers'
results.

Plugins that implement none of these hooks cost nothing: then there is no listener.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ferryvm.backend import BackendError, Code
from ferryvm.engine.journal import Attempt, Event, Listener, Placement
from ferryvm.failure import kind_of, one_line, shown
from ferryvm.hooks import FactValue, PlacementEvent, TransferEvent
from ferryvm.plugin import Plugins
from ferryvm.policy.fact import PLUGIN

if TYPE_CHECKING:
    from ferryvm.region.region import Region

ExtraFacts = Callable[["Region"], Mapping[str, FactValue]]
"""Facts about a region from plugins, by full name."""


def placement_listener(plugins: Plugins) -> Listener | None:
    """A listener that notifies plugins of placements; None if no plugin listens."""
    if not plugins.implement("ferryvm_placement"):
        return None

    def listen(event: Event, placement: Placement, detail: object) -> None:
        plugins.deliver("ferryvm_placement", _event(event, placement, detail))

    return listen


def _event(event: Event, placement: Placement, detail: object) -> PlacementEvent:
    attempt = detail if isinstance(detail, Attempt) else None
    last = placement.attempts[-1] if placement.attempts else None
    shown = attempt or (None if event is Event.HOT else last)
    return PlacementEvent(
        kind=event.value,
        pc=placement.pc,
        counting=placement.counting,
        region=attempt.region if attempt else placement.region,
        why=placement.why,
        backend=shown.backend if shown else "",
        outcome=attempt.outcome.value if attempt else "",
        reason=attempt.reason if attempt else "",
        seconds=attempt.seconds if attempt else 0.0,
        guard=detail if isinstance(detail, int) else None,
    )


def transfer_listener(plugins: Plugins) -> Callable[[TransferEvent], None] | None:
    """A listener that notifies plugins of transfers; None if no plugin listens."""
    if not plugins.implement("ferryvm_transfer"):
        return None

    def listen(event: TransferEvent) -> None:
        plugins.deliver("ferryvm_transfer", event)

    return listen


def extra_facts(plugins: Plugins) -> ExtraFacts | None:
    """A function that collects plugins' facts about a region; None if no plugin has any."""
    hook = "ferryvm_policy_facts"
    if not plugins.implement(hook):
        return None

    def facts_of(region: Region) -> Mapping[str, FactValue]:
        found: dict[str, FactValue] = {}
        for plugin, given in plugins.call(hook, region=region):
            fault: str | None = "returned what cannot be looked at"
            facts: dict[str, FactValue] = {}
            with plugins.checking(plugin, hook):
                fault = _fault(given)
                if fault is None:
                    facts = dict(given)  # type: ignore[call-overload]  # a mapping: `_fault` says so
            if fault is None and "." in plugin.name:
                fault = f"has facts that no rule can ask for: a dot in its name {plugin.name!r}"
            if fault is not None:
                plugins.drop(plugin, hook, fault)
                continue
            found.update({f"{PLUGIN}.{plugin.name}.{name}": v for name, v in facts.items()})
        return found

    return facts_of


def _fault(given: object) -> str | None:
    """The fault of the facts of a plugin."""
    if not isinstance(given, Mapping):
        return f"returned {kind_of(given)}, not a mapping from names to values"
    for name, value in given.items():
        if type(name) is not str or not name or "." in name:
            return f"returned a fact of the name {shown(name)}; a text without dots is expected"
        if not issubclass(type(value), bool | int | float | str):
            what = f"returned {kind_of(value)} as the fact {name!r}"
            return f"{what}; true, false, a number or a text is expected"
    return None


# --- results of compilers -------------------------------------------------------------------


def checked_reason(reason: object, who: str = "its accepts") -> str:
    """The reason of a refusal, as a line. Raises BackendError if it is not a text."""
    if not issubclass(type(reason), str):
        raise BackendError(f"{who} returned {shown(reason)}; None or a text is expected")
    assert isinstance(reason, str)
    return one_line(reason)


def checked_code(code: object) -> Code:
    """The result of `compile`, checked. Raises BackendError for code that cannot be entered or is
    not complete."""
    if not isinstance(code, Code):
        raise BackendError(f"its compile returned {kind_of(code)}, not a Code")
    for attribute, wanted in (("address", int), ("is_from_cache", bool), ("notes", Mapping)):
        found = getattr(code, attribute, None)
        if not isinstance(found, wanted):
            what = f"has {kind_of(found)} as its {attribute}, where {wanted.__name__} is expected"
            raise BackendError(f"the code that its compile returned {what}")
    if code.address <= 0:
        raise BackendError(f"the code that its compile returned has the address {code.address}")
    return code
