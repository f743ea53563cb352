# SPDX-License-Identifier: Apache-2.0
"""Where ours is the only plugin that is known without importlib.metadata; else that looks."""

from __future__ import annotations

import os
import sys
import time
import zipfile
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest

from ferryvm import own_plugin
from ferryvm.own_plugin import OwnPlugin, alone
from ferryvm.plugin import GROUP, OWN

from ..double.distribution import GOOD, plant


def own() -> OwnPlugin | None:
    return alone(GROUP, OWN)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, site: Path) -> Path:
    """A path with a distribution of ours and nothing else of the group."""
    plant(site, OWN, "", version="1.2", entry="in_tree")
    monkeypatch.setattr(sys, "path", [str(site), str(site / "missing")])
    finders = [one for one in sys.meta_path if one.__module__.startswith("_frozen_importlib")]
    monkeypatch.setattr(sys, "meta_path", finders)
    return site


def test_ours_is_known_as_importlib_metadata_knows_it(installed: Path) -> None:
    (point,) = metadata.entry_points(group=GROUP)
    assert point.dist is not None
    assert own() == OwnPlugin(point.name, point.module, point.dist.version)
    assert own() == OwnPlugin("in_tree", "ferryvm_plugin", "1.2")


def test_another_distribution_is_ours_to_tell_only_outside_of_the_group(installed: Path) -> None:
    other = installed / "other-1.dist-info"
    other.mkdir()
    (other / "entry_points.txt").write_text("[pytest11]\nferryvm = other\n", encoding="utf-8")
    assert own() is not None
    plant(installed, "tally", GOOD.format(name="tally"))
    assert own() is None


def reading(seen: list[str]) -> Callable[[str], str]:
    """What reads entry points, and notes the files."""
    read = own_plugin._text

    def text(file: str) -> str:
        seen.append(file)
        return read(file)

    return text


def test_folders_that_have_not_changed_are_read_once(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for age, reads in ((10, 1), (0, 2)):  # what has just changed may change again unseen
        changed = time.time() - age
        os.utime(installed, (changed, changed))
        seen: list[str] = []
        with monkeypatch.context() as patch:
            patch.setattr(own_plugin, "_text", reading(seen))
            assert own() is not None
            assert own() is not None
        assert len(seen) == reads


@pytest.mark.parametrize("unusual", ["egg", "archive", "text", "second", "finder", "two points"])
def test_what_is_unusual_takes_a_closer_look(
    installed: Path, unusual: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert own() is not None
    points = installed / f"{OWN}-1.2.dist-info" / "entry_points.txt"
    match unusual:
        case "egg":
            (installed / "old.egg").mkdir()
        case "archive":
            with zipfile.ZipFile(installed / "some.zip", "w") as archive:
                archive.writestr("some.py", "")
            sys.path.append(str(installed / "some.zip"))
        case "text":
            points.write_bytes(b"[ferryvm]\nin_tree = \xff\n")
        case "second":
            plant(installed, OWN, "", version="1.3")
        case "finder":
            finder = type("Finder", (), {"find_distributions": lambda *_: []})
            monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
        case "two points":
            points.write_text("[ferryvm]\na = a\nb = b\n", encoding="utf-8")
    assert own() is None
