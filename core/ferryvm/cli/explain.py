# SPDX-License-Identifier: Apache-2.0
"""`ferry explain`: run a program and report what was compiled, by which backend, and why."""

from __future__ import annotations

import collections
import dataclasses
import functools
import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

import ferryvm
from ferryvm.backend import ArrayActivity
from ferryvm.cli import termination
from ferryvm.cli.argument import ProgramCommand
from ferryvm.cli.engine import make_engine
from ferryvm.cli.file import naming
from ferryvm.cli.limit import limited
from ferryvm.cli.option import device_option, hosts_option, language_option, policy_option
from ferryvm.cli.output import write
from ferryvm.cli.path import FILE
from ferryvm.cli.run_failure import Trapped, host_failure, with_source_line
from ferryvm.engine import Engine, ProgramInterrupted, TrapError
from ferryvm.engine.journal import Outcome
from ferryvm.machine.memory import Limits

if TYPE_CHECKING:
    from rich.console import Console

    from ferryvm.engine.explain import Explained, Explanation, Share, Tried
    from ferryvm.item_range import PlaceActivity

_INDENT = 4


@click.command(cls=ProgramCommand)
@click.argument("file", type=FILE)
@language_option
@policy_option
@click.option("--backend", metavar="NAME", help="One backend instead of a policy.")
@device_option
@hosts_option
@limited
@click.option(
    "--count", is_flag=True, help="Count instructions exactly: slower, and shares of them."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def explain(
    file: Path,
    language: str | None,
    policy: Path | None,
    backend: str | None,
    device: str | None,
    hosts: tuple[str, ...],
    limits: Limits | None,
    count: bool,
    as_json: bool,
    arguments: tuple[str, ...],
) -> None:
    """Run FILE and print what was compiled, by which backend, and why.

    The output of the program goes to standard error. The report is printed whether the program
    succeeds or fails; the exit code is that of `ferry run`.
    ARGUMENTS, after `--`, are the program's.
    """
    from ferryvm.engine.explain import explain as explained
    from ferryvm.engine.observer import Observer
    from ferryvm.policy import default

    output = functools.partial(write, 2)
    engine = make_engine(
        backend,
        policy,
        device,
        limits=limits,
        output=output,
        hosts=hosts,
        arguments=arguments,
        default=default(),
    )
    observer = Observer()
    observer.watch(engine)
    with naming(file):
        execution = engine.start(ferryvm.read(file, language=language))
    counts_anyway = _prepare(engine)
    status = "failed"
    try:
        status = execution.run(count=count or counts_anyway).status.name.lower()
    except ProgramInterrupted as error:
        status = "interrupted"
        raise termination.Interrupted(with_source_line(str(error), error.position)) from None
    except TrapError as error:
        status = "trap"
        raise Trapped(with_source_line(str(error), error.position)) from None
    except Exception as error:  # noqa: BLE001 - a host function may raise anything
        raise host_failure(execution.machine, error) or error from None
    finally:
        explanation = explained(execution, observer, status)
        if as_json:
            click.echo(json.dumps(dataclasses.asdict(explanation), indent=2))
        else:
            _print(explanation)


def _prepare(engine: Engine) -> bool:
    """True if a shadow requires the counting form.

    Compilers are imported before the program runs; otherwise a short run's compilations would
    depend on the speed of the imports.
    """
    from ferryvm.engine.mixed import Mixed

    if not isinstance(engine.backend, Mixed):
        return False
    engine.backend.warm_up()
    return engine.backend.policy.shadow is not None


def _print(explanation: Explanation) -> None:
    from rich.console import Console

    console = Console(markup=False, highlight=False, soft_wrap=True)
    for region in explanation.regions:
        _print_region(console, region)
    if not explanation.regions:
        why = explanation.counts or "no place got hot"
        console.print(f"nothing was compiled: {why}")
    if explanation.not_hot:
        console.print("not hot", style="bold")
        for cold in explanation.not_hot:
            where = _where(cold.pc, cold.position)
            times = f"reached {cold.reached} of {cold.threshold} times"
            console.print(f"{'':{_INDENT}}{cold.region}, {where}: {times}")
    _print_totals(explanation)


def _print_region(console: Console, region: Explained) -> None:
    where = _where(region.pc, region.position)
    console.print(f"{region.region}, {where}" if region.region else where, style="bold", end="")
    console.print(f": {region.state}")
    rows = [("why", region.why), *(("rules", line) for line in _rule_lines(region))]
    for tried in region.tried:
        rows += [(tried.backend, line) for line in _tried_lines(tried)]
    rows += [("guesses", line) for line in region.guesses]
    if region.recompilations:
        rows.append(("guards", f"compiled again {_times(region.recompilations)} for them"))
    rows += [("tiers", line) for line in region.replacements]
    if region.compared:
        rows.append(("shadow", f"compared {_times(region.compared)}"))
    rows += [("shadow", f"wrong: {text}") for text in region.differences]
    rows += [("launch", line) for line in _launch_lines(region)]
    before = ""
    for key, text in rows:
        console.print(f"{'':{_INDENT}}{'' if key == before else key:10}{text}")
        before = key


def _launch_lines(region: Explained) -> list[str]:
    """The items of a launch: as profiled, and where and in which time they ran out of order."""
    profile, lines = region.profile, []
    if profile is not None:
        items = f"{profile.items} items" if profile.items else "items not seen yet"
        sizes = (
            f"reads arrays of {_bytes(profile.bytes_read)}, writes {_bytes(profile.bytes_written)}"
        )
        lines.append(f"{items}, {profile.item_work} instructions each; {sizes}")
    for one in region.launches:
        each = "" if one.item_seconds is None else f", {one.item_seconds * 1e6:.3g} us each"
        most = f", with {one.most} items at most" if one.exits else ""
        lines.append(f"left for {_times(one.exits)}{most}{each or ', not timed in order'}")
        if one.times:
            done = f"{one.items} items done, {one.suspended} suspended"
            spent = _milliseconds(one.seconds)
            if one.expected:
                spent += f", expected in order {_milliseconds(one.expected)}"
            lines.append(f"on {one.where} {_times(one.times)}: {done}; {spent}")
        for pc, times in sorted(one.failures.items()):
            lines.append(f"the guard at pc {pc} failed for {times} items")
        for place in one.places:
            lines += _place_lines(place)
        if one.stopped:
            lines.append(f"in order from then on: {one.stopped}")
    return lines


def _place_lines(place: PlaceActivity) -> list[str]:
    """A place of a launch: its expected and found times, and why it is used or not."""
    expected = (
        "" if place.next_expected is None else f", expected {_milliseconds(place.next_expected)}"
    )
    line = f"place {place.name}: {place.state}{expected} ({place.source})"
    if not place.times:
        return [line]
    trials = f", {_times(place.trials)} on trial" if place.trials else ""
    ran = (
        f"ran {_times(place.times)}{trials}: {place.items} items in {_milliseconds(place.seconds)}"
    )
    found = f"{ran}, expected {_milliseconds(place.expected)}"
    return [line, found, *([place.learned] if place.learned else [])]


def _rule_lines(region: Explained) -> list[str]:
    """The results of the rules, each with its region if there are several."""
    lines = []
    counts = collections.Counter(region.considered)
    is_one = {one.region for one in counts} <= {region.region}
    for one, times in counts.items():
        about = "" if is_one else f" (about {one.region})"
        again = "" if times == 1 else f", asked {_times(times)}"
        lines += [f"{reason}{about}" for reason in one.passed]
        lines.append(f"{one.decision}{about}{again}")
    return [*lines, region.remark] if region.remark else lines


_MADE = (Outcome.COMPILED.value, Outcome.CACHED.value)


def _tried_lines(tried: Tried) -> list[str]:
    """The attempts of backends, and the metrics of their code."""
    how = f"{tried.outcome} quickly" if tried.is_quick else tried.outcome
    line = f"{how} in {_milliseconds(tried.seconds)}"
    if tried.reason and tried.outcome not in _MADE:
        return [f"{tried.outcome}: {tried.reason}"]
    steps = [f"{name} {_milliseconds(seconds)}" for name, seconds in tried.steps.items()]
    if steps:
        line += f" ({', '.join(steps)})"
    if tried.guards:
        line += f", {tried.guards} guard{'s' * (tried.guards > 1)}"
    lines = [line, tried.reason] if tried.reason else [line]
    if tried.fault:
        lines.append(tried.fault)
        if not tried.entries:
            return lines
    done = f"entered {_times(tried.entries)}, {_milliseconds(tried.code_seconds)} in its code"
    if tried.instructions is not None:
        done += f", {tried.instructions} instructions"
    lines.append(done)
    if tried.crowded:
        lines.append(tried.crowded)
    if tried.to_device or tried.to_host:
        copied = f"copied {_bytes(tried.to_device)} to the device, {_bytes(tried.to_host)} back"
        lines.append(f"{copied}, in {_milliseconds(tried.transfer_seconds)}")
    lines += [_array_line(one) for one in tried.arrays]
    lines += tried.nests
    lines += [
        f"the guard at pc {pc} failed {_times(times)}"
        for pc, times in sorted(tried.guard_failures.items())
    ]
    return lines


def _array_line(one: ArrayActivity) -> str:
    """The copies of an array, and the part of entries that needed none."""
    to_device = f"{_bytes(one.to_device)} to the device in {_milliseconds(one.seconds_to_device)}"
    to_host = f"{_bytes(one.to_host)} back in {_milliseconds(one.seconds_to_host)}"
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


def _print_totals(explanation: Explanation) -> None:
    from rich.table import Table

    from ferryvm.cli.show import print_table

    table = Table("backend", "entries", "time", "of time", "instructions", "of them", box=None)
    for share in explanation.shares:
        table.add_row(
            share.backend,
            str(share.entries),
            _milliseconds(share.seconds),
            f"{share.share_of_time:.1%}",
            _instructions(explanation, share),
            "" if share.share_of_instructions is None else f"{share.share_of_instructions:.1%}",
        )
    other, part = explanation.other_seconds, explanation.other_share_of_time
    table.add_row("the rest", "", _milliseconds(other), f"{part:.1%}", "", "")
    print_table(table)
    run = _milliseconds(explanation.seconds.run)
    compiled = _milliseconds(explanation.compile_seconds)
    click.echo(f"{explanation.status}; {run} of running, {compiled} of compiling")


def _instructions(explanation: Explanation, share: Share) -> str:
    """A backend's instructions; a shadow completes none of the program's."""
    if share.instructions is not None:
        return str(share.instructions)
    return "not counted" if explanation.instructions is None else ""


def _where(pc: int, position: str | None) -> str:
    return f"pc {pc} ({position})" if position else f"pc {pc}"


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms"
