# SPDX-License-Identifier: Apache-2.0
"""Cycles against cost, as a picture: each variant a point, those of the Pareto front named and
joined by steps."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

from ferryvm.errors import FerryError
from ferryvm_backends.vliw.sweep.measure import Result, front
from ferryvm_backends.vliw.sweep.variant import shown

FORMATS = ("png", "svg")


def check(path: Path) -> None:
    """Raise FerryError unless a file of this name can be drawn here."""
    if path.suffix.removeprefix(".") not in FORMATS:
        known = " or ".join(f".{each}" for each in FORMATS)
        raise FerryError(f"{path}: a plot has the suffix {known}")
    try:
        import matplotlib  # noqa: F401 - whether it is there; it takes a second to load
    except ImportError as error:
        if error.name != "matplotlib":
            raise FerryError(f"--plot: matplotlib does not load: {error}") from error
        remedy = "pip install 'ferryvm[plot]'"
        raise FerryError(f"--plot needs matplotlib, which is not installed: {remedy}") from None


def draw(results: Sequence[Result], title: str, form: str) -> bytes:
    """The picture of the results that ran, at least one, in one of FORMATS."""
    import matplotlib
    from matplotlib.figure import Figure

    best = front(results)
    ran = [one for one in results if one.metrics is not None]
    # The same results make the same file; texts of a vector graphic remain texts.
    with matplotlib.rc_context({"svg.hashsalt": "ferryvm", "svg.fonttype": "none"}):
        figure = Figure(figsize=(8, 5), layout="constrained")
        axes = figure.add_subplot()
        axes.set_title(title, parse_math=False)
        axes.set_xlabel("cost")
        axes.set_ylabel("cycles")
        axes.grid(visible=True, alpha=0.3)
        axes.yaxis.set_major_formatter("{x:,.0f}")
        axes.step(*_points(best), where="post", color="tab:red", label="cheapest for its cycles")
        axes.scatter(*_points(ran), color="tab:blue", zorder=3, label="variants")
        axes.scatter(*_points(best), color="tab:red", zorder=4)
        for one in best:
            (x,), (y,) = _points([one])
            name = ", ".join(f"{axis}={shown(value)}" for axis, value in one.settings.items())
            axes.annotate(
                name, (x, y), xytext=(4, 4), textcoords="offset points", fontsize=7, rotation=30
            )
        axes.margins(0.1, 0.15)
        axes.legend()
        file = io.BytesIO()
        metadata = {"Date": None} if form == "svg" else {}
        figure.savefig(file, format=form, dpi=150, metadata=metadata)
    return file.getvalue()


def _points(results: Sequence[Result]) -> tuple[list[float], list[int]]:
    pairs = [
        (one.cost, one.metrics.cycles)
        for one in results
        if one.cost is not None and one.metrics is not None
    ]
    return [cost for cost, _ in pairs], [cycles for _, cycles in pairs]
