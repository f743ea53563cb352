# SPDX-License-Identifier: Apache-2.0
"""The text about a region in a report of mixed execution: a title, and rows of a key and a line."""

from __future__ import annotations

import collections

from ferryvm.backend import ArrayActivity
from ferryvm.engine.explain import Explained, Tried
from ferryvm.engine.journal import Outcome
from ferryvm.item_range import PlaceActivity

Row = tuple[str, str]
"""A line about a region, with what it is about: `why`, `rules`, the name of a backend."""

_MADE = (Outcome.COMPILED.value, Outcome.CACHED.value)


def title(region: Explained) -> str:
    """The first line about a region, without its state."""
    place = where(region.pc, region.position)
    return f"{region.region}, {place}" if region.region else place


def rows(region: Explained, is_observed: bool = True) -> list[Row]:
    """The other lines about a region. `is_observed`: its code recorded entries and their times."""
    found = [("why", region.why), *(("rules", line) for line in _rule_lines(region))]
    for tried in region.tried:
        found += [(tried.backend, line) for line in _tried_lines(tried, is_observed)]
    found += [("guesses", line) for line in region.guesses]
    if region.recompilations:
        found.append(("guards", f"compiled again {how_often(region.recompilations)} for them"))
    found += [("tiers", line) for line in region.replacements]
    if region.compared:
        found.append(("shadow", f"compared {how_often(region.compared)}"))
    found += [("shadow", f"wrong: {text}") for text in region.differences]
    found += [("launch", line) for line in _launch_lines(region)]
    return found


def aligned(found: list[Row], indent: int) -> list[str]:
    """Rows as lines of text, each key once."""
    lines, before = [], ""
    for key, text in found:
        lines.append(f"{'':{indent}}{'' if key == before else key:10}{text}")
        before = key
    return lines


def _launch_lines(region: Explained) -> list[str]:
    """The items of a launch: as profiled, and where and in which time they ran out of order."""
    profile, lines = region.profile, []
    if profile is not None:
        items = f"{profile.items} items" if profile.items else "items not seen yet"
        sizes = (
            f"reads arrays of {_bytes(profile.bytes_read)}, writes {_bytes(profile.bytes_written)}"
        )
        lines.append(f"{items}, {profile.item_work} instructions each; {sizes}")
        if profile.bytes_resident:
            lines.append(f"{_bytes(profile.bytes_resident)} of them on {profile.resident_on} then")
    for one in region.launches:
        each = "" if one.item_seconds is None else f", {one.item_seconds * 1e6:.3g} us each"
        most = f", with {one.most} items at most" if one.exits else ""
        lines.append(f"left for {how_often(one.exits)}{most}{each or ', not timed in order'}")
        if one.times:
            done = f"{one.items} items done, {one.suspended} suspended"
            if one.finished:
                done += f", {one.finished} of these finished by threads"
            spent = milliseconds(one.seconds)
            if one.expected:
                spent += f", expected in order {milliseconds(one.expected)}"
            lines.append(f"on {one.where} {how_often(one.times)}: {done}; {spent}")
        if one.at_once:
            lines.append(f"results come back behind each launch: {one.at_once}")
        if one.remained:
            lines.append(f"results remained on the device {how_often(one.remained)}")
        for pc, times in sorted(one.failures.items()):
            lines.append(f"the guard at pc {pc} failed for {times} items")
        for place in one.places:
            lines += place_lines(place)
        if one.stopped:
            lines.append(f"in order from then on: {one.stopped}")
    return lines


def place_lines(place: PlaceActivity) -> list[str]:
    """A place of a launch: its expected and found times, and why it is used or not."""
    expected = (
        "" if place.next_expected is None else f", expected {milliseconds(place.next_expected)}"
    )
    line = f"place {place.name}: {place.state}{expected} ({place.source})"
    if not place.times:
        return [line]
    trials = f", {how_often(place.trials)} on trial" if place.trials else ""
    ran = f"ran {how_often(place.times)}{trials}: {place.items} items in {milliseconds(place.seconds)}"
    found = f"{ran}, expected {milliseconds(place.expected)}"
    lines = [line, found, *([place.learned] if place.learned else [])]
    if place.deferred:
        lines.append(
            f"{how_often(place.deferred)} further, {place.deferred_items} items, not timed: results "
            "stayed there until launches behind them had run"
        )
    return lines


def _rule_lines(region: Explained) -> list[str]:
    """The results of the rules, each with its region if there are several."""
    lines = []
    counts = collections.Counter(region.considered)
    is_one = {one.region for one in counts} <= {region.region}
    for one, times in counts.items():
        about = "" if is_one else f" (about {one.region})"
        again = "" if times == 1 else f", asked {how_often(times)}"
        lines += [f"{reason}{about}" for reason in one.passed]
        lines.append(f"{one.decision}{about}{again}")
    return [*lines, region.remark] if region.remark else lines


def _tried_lines(tried: Tried, is_observed: bool) -> list[str]:
    """The attempts of backends, and the metrics of their code."""
    how = f"{tried.outcome} quickly" if tried.is_quick else tried.outcome
    line = f"{how} in {milliseconds(tried.seconds)}"
    if tried.reason and tried.outcome not in _MADE:
        return [f"{tried.outcome}: {tried.reason}"]
    steps = [f"{name} {milliseconds(seconds)}" for name, seconds in tried.steps.items()]
    if steps:
        line += f" ({', '.join(steps)})"
    if tried.guards:
        line += f", {tried.guards} guard{'s' * (tried.guards > 1)}"
    lines = [line, tried.reason] if tried.reason else [line]
    if tried.fault:
        lines.append(tried.fault)
        if not tried.entries:
            return lines
    done = f"entered {how_often(tried.entries)}, {milliseconds(tried.code_seconds)} in its code"
    if tried.instructions is not None:
        done += f", {tried.instructions} instructions"
    if is_observed:
        lines.append(done)
    if tried.crowded:
        lines.append(tried.crowded)
    if tried.unfinished:
        left = how_often(tried.unfinished)
        lines.append(f"left in the middle of a group {left}, which an interpreter ends")
    if tried.to_device or tried.to_host:
        copied = f"copied {_bytes(tried.to_device)} to the device, {_bytes(tried.to_host)} back"
        lines.append(f"{copied}, in {milliseconds(tried.transfer_seconds)}")
    lines += [_array_line(one) for one in tried.arrays]
    lines += tried.nests
    lines += [
        f"the guard at pc {pc} failed {how_often(times)}"
        for pc, times in sorted(tried.guard_failures.items())
    ]
    return lines


def _array_line(one: ArrayActivity) -> str:
    """The copies of an array, and the part of entries that needed none."""
    to_device = f"{_bytes(one.to_device)} to the device in {milliseconds(one.seconds_to_device)}"
    to_host = f"{_bytes(one.to_host)} back in {milliseconds(one.seconds_to_host)}"
    return (
        f"{one.name}: {to_device}, {to_host}; unchanged at {one.unchanged} of {one.entries} entries"
    )


def _bytes(count: int) -> str:
    """A number of bytes, abbreviated if it is large."""
    for unit in ("bytes", "KiB", "MiB"):
        if count < 10_000:
            return f"{count} {unit}"
        count //= 1024
    return f"{count} GiB"


def where(pc: int, position: str | None) -> str:
    """A place of a program."""
    return f"pc {pc} ({position})" if position else f"pc {pc}"


def how_often(number: int) -> str:
    """A number of times."""
    return "once" if number == 1 else f"{number} times"


def milliseconds(seconds: float) -> str:
    """A time."""
    return f"{seconds * 1e3:.1f} ms"
