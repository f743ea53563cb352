# SPDX-License-Identifier: Apache-2.0
"""Options of the commands of the benchmarks."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click

from benchmarks.benchmark import BY_NAME

Names = Callable[[], Iterable[str]]
Decorator = Callable[[Callable[..., None]], Callable[..., None]]

JSON = click.option("--json", "json_path", metavar="FILE", help="Write JSON, - for stdout.")
QUICK = click.option("--quick", is_flag=True, help="Small sizes: whether it works, not how fast.")


def _known(names: Names) -> Callable[..., tuple[str, ...] | None]:
    """A check of a comma-separated list; a name that is not known is a usage error."""

    def check(
        _context: click.Context, _parameter: click.Parameter, value: str | None
    ) -> tuple[str, ...] | None:
        if value is None:
            return None
        known = list(names())
        found = tuple(name for name in value.split(",") if name)
        for name in found:
            if name not in known:
                raise click.BadParameter(f"{name!r} is none of {', '.join(known)}")
        return found

    return check


def names(option: str, known: Names, text: str, parameter: str | None = None) -> Decorator:
    """An option that takes some of these names; `text`: its help, `parameter`: where it goes."""
    declared = (option,) if parameter is None else (option, parameter)
    return click.option(*declared, callback=_known(known), metavar="NAME,...", help=text)


def rounds_option(default: int) -> Decorator:
    """The number of rounds."""
    return click.option("--rounds", default=default, show_default=True, type=click.IntRange(min=1))


def peers_option(known: Names) -> Decorator:
    """Those that take part."""
    return names("--peers", known, "Default: all.", "chosen")


PROGRAMS = names("--programs", lambda: BY_NAME, "Default: all nine.")
