# SPDX-License-Identifier: Apache-2.0
"""The manifest obeys its schema, describes the function, and has the digests of all files."""

from __future__ import annotations

import hashlib
import json
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ferryvm.portable import ExportOptions, export_region
from ferryvm.verify import Verified

from .conftest import Folder


def manifest(folder: Path) -> Any:
    return json.loads((folder / "manifest.json").read_text("utf-8"))


@pytest.mark.parametrize("name", ["axpy", "steps", "scaled", "histogram"])
def test_the_manifest_obeys_the_published_schema(exported: Folder, name: str) -> None:
    text = (resources.files("ferryvm.portable") / "manifest.schema.json").read_text("utf-8")
    jsonschema.validate(manifest(exported(name)), json.loads(text))


def test_arguments_have_types_directions_and_shapes(exported: Folder) -> None:
    found = manifest(exported("axpy"))["arguments"]
    assert found == [
        {"name": "a", "kind": "scalar", "type": "f64"},
        {"name": "x", "kind": "array", "type": "f64", "direction": "in", "shape": ["x_length"]},
        {"name": "x_length", "kind": "length", "type": "i64", "of": "x"},
        {"name": "y", "kind": "array", "type": "f64", "direction": "inout", "shape": ["y_length"]},
        {"name": "y_length", "kind": "length", "type": "i64", "of": "y"},
    ]


def test_an_array_that_is_only_written_is_an_output(exported: Folder) -> None:
    found = manifest(exported("roots"))["arguments"]
    assert [each["direction"] for each in found if each["kind"] == "array"] == ["in", "out"]


def test_statics_are_arguments_and_results(exported: Folder) -> None:
    found = manifest(exported("scaled"))["arguments"]
    names = [(each["name"], each["kind"], each["type"]) for each in found]
    assert names == [
        ("x", "scalar", "f64"),
        ("scale", "scalar", "f64"),
        ("calls", "scalar", "i64"),
        ("result", "result", "f64"),
        ("new_calls", "result", "i64"),
    ]


def test_errors_have_their_lines(exported: Folder) -> None:
    (error,) = manifest(exported("dot"))["errors"]
    assert error == {
        "number": 6,
        "name": "INDEX_OUT_OF_BOUNDS",
        "message": "index out of bounds",
        "lines": [14],
    }


def test_digests_are_those_of_the_files(exported: Folder) -> None:
    folder = exported("axpy")
    files = manifest(folder)["files"]
    assert sorted(each["name"] for each in files) == sorted(
        path.name
        for path in folder.iterdir()
        if path.is_file()
        and path.suffix in (".c", ".h", ".txt", ".py", "")
        and path.name not in ("check-program", "check-sanitized")
    )
    for each in files:
        content = (folder / each["name"]).read_bytes()
        assert each["sha256"] == hashlib.sha256(content).hexdigest()
        assert each["bytes"] == len(content)


def test_a_folder_is_small_and_the_same_each_time(kernels: Verified, tmp_path: Path) -> None:
    for name in ("one", "other"):
        made = export_region(kernels, "histogram", tmp_path / name)
        assert made.bytes <= 200_000
    one, other = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        for name in ("one", "other")
    )
    assert one == other


def test_the_seed_and_the_number_of_vectors_are_those_that_were_asked_for(
    kernels: Verified, tmp_path: Path
) -> None:
    export_region(kernels, "axpy", tmp_path / "folder", ExportOptions(seed=7, vectors=100))
    assert manifest(tmp_path / "folder")["vectors"] == {
        "file": "vectors.txt",
        "count": 100,
        "seed": 7,
        "unfinished": 0,
        "dependent": 0,
    }
