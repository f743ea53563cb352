# SPDX-License-Identifier: Apache-2.0
"""`ferry doctor --calibrate`: what is kept, and one line for each thing that goes wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from ferryvm import calibrator
from ferryvm.backend import BackendError, Capabilities, Compiler
from ferryvm.cli.calibration import stored
from ferryvm.cli.command import ferry
from ferryvm.engine.launch_place import calibration
from ferryvm.engine.launch_place.calibration import CLASSES, Calibration
from ferryvm.errors import FerryError
from ferryvm.registry import Registry

from ..double.compiler import FunctionCompiler, compile_by_llvm
from ..double.interpreter import Minimal
from ..double.registry import plugin

pytestmark = pytest.mark.usefixtures("empty_cache")


class Card(FunctionCompiler):
    """A backend with two devices."""

    capabilities = Capabilities(ranges=True, devices=True)

    def __init__(self) -> None:
        super().__init__(compile_by_llvm, "card")

    def device_names(self) -> list[str]:
        return ["one", "two"]

    def versions(self, device: str) -> dict[str, str]:
        return {"device": device, "driver": "1"}


def _measured(compiler: Compiler, device: str) -> Calibration:
    seconds, versions = dict.fromkeys(CLASSES, 1e-9), calibration.versions(compiler, device)
    return Calibration(compiler.name, device, versions, 1e-5, 0.0, 1e9, 2e9, 0.5, seconds, {})


Doctor = Callable[..., tuple[int, str, str]]


@pytest.fixture
def doctor(monkeypatch: pytest.MonkeyPatch) -> Doctor:
    """Runs the command where there are a card and an interpreter; exit code, output, errors."""

    def run(*arguments: str) -> tuple[int, str, str]:
        def made() -> Registry:
            found = Registry(discover=False)
            found.register(plugin(Card(), Minimal), "test")
            return found

        monkeypatch.setattr("ferryvm.cli.calibration.Registry", made)
        command = ["doctor", "--calibrate", *arguments]
        done = CliRunner().invoke(ferry, command, standalone_mode=False)
        if done.exception is not None:
            raise done.exception
        return done.return_value, done.stdout, done.stderr

    return run


def test_each_device_is_measured_and_kept(doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrator, "calibrate", _measured)
    code, output, errors = doctor()
    assert (code, errors) == (0, "")
    assert output.startswith("card on one\n    launch              10 us\n")
    assert "    copies back         2 GB/s\n" in output
    assert calibration.load("card").by_device.keys() == {"one", "two"}
    code, output, _ = doctor("--json")
    assert [one["device"] for one in json.loads(output)] == ["one", "two"]


def test_what_is_kept_is_a_finding_of_its_device(
    doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    (none,) = stored(Card())
    assert none.facts == {"kept": "none: card is not calibrated; run `ferry doctor --calibrate`"}
    monkeypatch.setattr(calibrator, "calibrate", _measured)
    doctor()
    found = [*stored(Card())]
    assert [one.subject for one in found] == ["calibration of one", "calibration of two"]
    assert found[0].facts["copies back"] == "2 GB/s"
    monkeypatch.setattr(Card, "version", "2")
    assert "stale: backend was" in str(next(stored(Card())).facts["out of date"])


def test_a_device_that_fails_is_one_line_and_the_others_are_kept(
    doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measure(compiler: Compiler, device: str) -> Calibration:
        if device == "one":
            raise BackendError("it is out of order")
        return _measured(compiler, device)

    monkeypatch.setattr(calibrator, "calibrate", measure)
    code, _, errors = doctor()
    assert (code, errors) == (1, "ferry: card on one: not calibrated: it is out of order\n")
    assert calibration.load("card").by_device.keys() == {"two"}
    missing = [*stored(Card())][-1]
    assert missing.subject == "calibration of one"
    assert "no launch is placed there" in str(missing.facts["kept"])


def test_an_interrupted_calibration_keeps_what_there_was(
    doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibrator, "calibrate", _measured)
    doctor()
    before = calibration.load("card")

    def stop(_compiler: Compiler, _device: str) -> Calibration:
        raise KeyboardInterrupt

    monkeypatch.setattr(calibrator, "calibrate", stop)
    with pytest.raises(click.exceptions.Abort):
        doctor()
    assert calibration.load("card") == before


def test_what_cannot_be_calibrated_is_an_error_of_one_line(
    doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(FerryError, match=r"^minimal: it runs no items of launches out of order$"):
        doctor("--backend", "minimal")
    with pytest.raises(FerryError, match="no backend 'nope'"):
        doctor("--backend", "nope")
    monkeypatch.setattr(Card, "probe", lambda _: "there is no card")
    with pytest.raises(FerryError, match=r"'card' is not usable here: there is no card$"):
        doctor("--backend", "card")
    with pytest.raises(FerryError, match=r"^no backend here runs items of launches out of order"):
        doctor()


def test_a_cache_that_cannot_be_written_is_told_before_anything_is_measured(
    doctor: Doctor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setenv("FERRYVM_CACHE_DIR", str(file / "cache"))
    monkeypatch.setattr(calibrator, "calibrate", pytest.fail)
    with pytest.raises(FerryError, match=r"^no calibration can be kept: cache .* cannot be used"):
        doctor()
