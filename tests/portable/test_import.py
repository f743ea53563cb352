# SPDX-License-Identifier: Apache-2.0
"""Exported and foreign kernels are called from Python and programs, once their vectors have
passed."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import ferryvm
from ferryvm.engine.instance import CallError
from ferryvm.errors import FerryError, UnknownNameError
from ferryvm.isa.trap import Trap
from ferryvm.machine.host import HostError
from ferryvm.portable import (
    ExportOptions,
    ImportedKernel,
    ImportedTrapError,
    ImportRefusedError,
    export_region,
    import_kernel,
)
from ferryvm.portable.harness import golden
from ferryvm.portable.imported import loader
from ferryvm.verify import Verified

from ..command import ferry
from ..tier import sample
from .conftest import KERNELS, Folder

PROGRAM = """
(host-function dot ((array f64) (array f64)) f64)
(define v (make-array f64 4))
(array-set! v 1 3.0)
(print! (dot v v))
(define (broken) (dot v (make-array f64 1)))
"""


def edit(folder: Path, **fields: Any) -> None:
    """Change fields of a manifest."""
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | fields), "utf-8")


def rewrite(folder: Path, name: str, old: str, new: str) -> None:
    """Change the last such text of a file, and the digest in the manifest."""
    before, found, after = (folder / name).read_text("utf-8").rpartition(old)
    assert found
    (folder / name).write_text(before + new + after, "utf-8")
    files = json.loads((folder / "manifest.json").read_text("utf-8"))["files"]
    for each in files:
        if each["name"] == name:
            each["sha256"] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    edit(folder, files=files)


@pytest.fixture(scope="module")
def dot(exported: Folder) -> ImportedKernel:
    return import_kernel(exported("dot"))


@pytest.fixture
def copy(exported: Folder, tmp_path: Path) -> Callable[[str], Path]:
    """A folder in C that may be changed."""

    def made(name: str) -> Path:
        shutil.copytree(exported(name), tmp_path / "folder")
        return tmp_path / "folder"

    return made


NO_DRIVER = {"ptx": "the driver of CUDA is not here", "spirv": "takes no SPIR-V"}
"""Messages by targets that not each machine can run."""

ROUNDTRIPS = [(target, name) for target in loader.LOADERS for name in ("axpy", "scaled", "dot")]


@pytest.mark.parametrize(
    ("target", "name"), sample([each for each in ROUNDTRIPS if each[0] != "library"], 4)
)
def test_an_exported_kernel_comes_back(
    kernels: Verified, tmp_path: Path, target: str, name: str
) -> None:
    if target in ("opencl", "wasm"):
        pytest.importorskip({"opencl": "pyopencl", "wasm": "wasmtime"}[target])
    export_region(kernels, name, tmp_path / "folder", ExportOptions(target, vectors=20))
    try:
        kernel = import_kernel(tmp_path / "folder")
    except ImportRefusedError as error:
        if target not in NO_DRIVER or NO_DRIVER[target] not in str(error):
            raise
        pytest.skip(str(error))
    assert (kernel.vectors, kernel.target) == (20, target)
    x, y = np.linspace(-1, 1, 9), np.arange(9.0)
    if name == "axpy":
        wanted = y + 0.5 * x
        assert kernel(0.5, x, y) is None
        assert y.tolist() == wanted.tolist()
    elif name == "dot":
        assert kernel(x, y) == sum(a * b for a, b in zip(x, y, strict=True))
    else:
        assert kernel(2.0, 2.5, 4) == (5.0, 5)


def test_an_error_has_its_kind_and_the_line_of_the_source(dot: ImportedKernel) -> None:
    with pytest.raises(ImportedTrapError) as caught:
        dot(np.zeros(3), np.zeros(2))
    assert caught.value.kind is Trap.INDEX_OUT_OF_BOUNDS
    assert caught.value.line == 14
    assert str(caught.value).startswith("kernels.skiff:14: index out of bounds")


BASE = np.zeros(8)
READ_ONLY = np.zeros(4)
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((BASE,), "dot takes a, b; found 1 arguments"),
        ((1.0, BASE), r"argument 1 \(a\) is 1.0; a contiguous array of float64 is expected"),
        ((BASE, BASE[::2]), "not contiguous"),
        ((BASE, BASE.astype("f4")), "is an array of float32"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(
    dot: ImportedKernel, arguments: tuple[Any, ...], message: str
) -> None:
    with pytest.raises(CallError, match=message):
        dot(*arguments)


def test_arrays_that_are_only_read_may_overlap_and_be_read_only(dot: ImportedKernel) -> None:
    assert dot(BASE[:4], BASE[2:]) == dot(READ_ONLY, READ_ONLY) == 0.0


def test_arrays_that_are_stored_may_not(exported: Folder) -> None:
    axpy = import_kernel(exported("axpy"))
    with pytest.raises(CallError, match="two arrays overlap in part"):
        axpy(1.0, BASE[:4], BASE[2:6])
    with pytest.raises(CallError, match="is a read-only array; the kernel stores into it"):
        axpy(1.0, BASE[:4], READ_ONLY)


@pytest.mark.parametrize("backend", sample(["reference", "switch", "threaded", "llvm"], 2))
def test_a_program_calls_an_imported_kernel(dot: ImportedKernel, backend: str) -> None:
    instance = ferryvm.Engine(backend).instantiate(ferryvm.compile(PROGRAM), hosts=[dot.host])
    assert instance.output == "9.0\n"
    with pytest.raises(ImportedTrapError, match=r"kernels.skiff:14: index out of bounds"):
        instance.broken()


def test_a_command_offers_the_kernel_of_a_folder(exported: Folder, tmp_path: Path) -> None:
    (tmp_path / "program.skiff").write_text(PROGRAM, "utf-8")
    done = ferry("run", "--hosts", exported("dot"), tmp_path / "program.skiff")
    assert (done.code, done.out) == (0, "9.0\n"), done.err


def test_a_function_of_several_results_is_no_host_function(exported: Folder) -> None:
    with pytest.raises(HostError, match="scaled has 2 results; a host function has one at most"):
        _ = import_kernel(exported("scaled")).host


def test_the_command_proves_a_folder(exported: Folder) -> None:
    done = ferry("import", exported("dot"))
    assert done.code == 0, done.err
    assert done.out.endswith(": dot (f64[] f64[]) -> (f64), 60 vectors pass (c)\n")


# --- proof ----------------------------------------------------------------------------------


def test_a_file_that_was_changed_is_refused(copy: Callable[[str], Path]) -> None:
    folder = copy("dot")
    with (folder / "dot.c").open("a") as file:
        file.write("/* */\n")
    with pytest.raises(ImportRefusedError, match=r"dot.c is not as the manifest says: its digest"):
        import_kernel(folder)


def mutate(folder: Path, insert: str) -> None:
    rewrite(folder, "dot.c", "\n{\n", "\n{\n" + insert)


@pytest.mark.parametrize(
    ("insert", "message"),
    [
        ("    if (a_length == 7) *result = 1.0; if (a_length == 7) return 0;\n", r"result is 3ff0"),
        ("    if (a_length == 7) __builtin_trap();\n", "ends by SIGILL"),
        ("    if (a_length == 7) return 3;\n", "status 3, expected 0"),
    ],
    ids=["result", "crash", "status"],
)
def test_a_vector_that_fails_is_named(
    copy: Callable[[str], Path], insert: str, message: str
) -> None:
    folder = copy("dot")
    mutate(folder, insert)
    with pytest.raises(
        ImportRefusedError, match=rf"^[^\n]*not imported: vector \d+: {message}[^\n]*$"
    ):
        import_kernel(folder)


def test_a_call_that_does_not_end_is_named(
    copy: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copy("dot")
    mutate(folder, "    while (a_length == 7) ;\n")
    monkeypatch.setenv(golden.TIME, "0.5")
    with pytest.raises(ImportRefusedError, match=r"vector \d+: does not end"):
        import_kernel(folder)


def test_damaged_vectors_are_refused(copy: Callable[[str], Path]) -> None:
    folder = copy("dot")
    rewrite(folder, "vectors.txt", "\nv 60 ", "\nw 60 ")
    with pytest.raises(ImportRefusedError, match=r"vectors.txt: damaged near w"):
        import_kernel(folder)


def test_code_that_no_compiler_takes_is_refused_in_one_line(copy: Callable[[str], Path]) -> None:
    folder = copy("dot")
    mutate(folder, "    this is no C;\n")
    with pytest.raises(ImportRefusedError, match=r"^[^\n]*did not compile it: [^\n]*error[^\n]*$"):
        import_kernel(folder)


@pytest.mark.parametrize(
    ("compiler", "message"),
    [
        ("no-such-cc -m64", "there is no C compiler 'no-such-cc -m64'; set CC"),
        ("cc '", "CC or CFLAGS"),
    ],
)
def test_without_a_c_compiler_an_import_is_refused(
    exported: Folder, monkeypatch: pytest.MonkeyPatch, compiler: str, message: str
) -> None:
    monkeypatch.setenv("CC", compiler)
    with pytest.raises(ImportRefusedError, match=message):
        import_kernel(exported("dot"))


# --- foreign kernels ------------------------------------------------------------------------

ARRAY_ = {"kind": "array", "type": "f32"}
SAXPY: dict[str, Any] = {
    "format": "ferryvm-export/1",
    "entry": "saxpy",
    "target": "c",
    "arguments": [
        {"name": "n", "kind": "scalar", "type": "i32"},
        {"name": "a", "kind": "scalar", "type": "f32"},
        {"name": "x", **ARRAY_, "direction": "in", "shape": ["n"]},
        {"name": "y", **ARRAY_, "shape": ["n"]},
    ],
    "vectors": {"file": "vectors.txt"},
}
SAXPY_C = """
void saxpy(int n, float a, const float *x, float *y)
{
    for (int i = 0; i < n; ++i)
        y[i] += a * x[i];
}
"""
SAXPY_VECTORS = """
ferryvm-vectors 1 saxpy
v 1 0
s 2
s 40000000
a 2 3f800000 40400000
a 2 3f800000 0
o 3 2 40400000 40c00000
.
"""
SAXPY_CL = """
__kernel void saxpy(int n, float a, __global const float *x, __global float *y)
{
    int i = get_global_id(0);
    if (i < n)
        y[i] += a * x[i];
}
"""


def foreign(folder: Path, manifest: dict[str, Any], **files: str) -> Path:
    folder.mkdir()
    (folder / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    for name, text in files.items():
        (folder / name.replace("_", ".", 1)).write_text(text, "utf-8")
    return folder


def test_a_foreign_function_with_a_manifest_by_hand_is_imported(tmp_path: Path) -> None:
    folder = foreign(tmp_path / "f", SAXPY, saxpy_c=SAXPY_C, vectors_txt=SAXPY_VECTORS)
    saxpy = import_kernel(folder)
    x, y = np.ones(3, np.float32), np.arange(3, dtype=np.float32)
    saxpy(3, 2.0, x, y)
    assert y.tolist() == [2, 3, 4]
    with pytest.raises(CallError, match="x has 3 elements; n = 4 are expected"):
        saxpy(4, 2.0, x, y)


@pytest.mark.nightly
def test_a_foreign_kernel_of_opencl_is_imported(tmp_path: Path) -> None:
    pytest.importorskip("pyopencl")
    manifest = SAXPY | {"target": "opencl", "launch": LAUNCH}
    folder = foreign(tmp_path / "f", manifest, saxpy_cl=SAXPY_CL, vectors_txt=SAXPY_VECTORS)
    x, y = np.ones(11, np.float32), np.arange(11, dtype=np.float32)
    import_kernel(folder)(11, 2.0, x, y)
    assert y.tolist() == [2.0 + i for i in range(11)]


def test_a_function_of_a_library_is_imported(tmp_path: Path) -> None:
    number = {"type": "f64"}
    manifest = {
        "format": "ferryvm-export/1",
        "entry": "fdim",
        "target": "library",
        "arguments": [
            {"name": "a", "kind": "scalar", **number},
            {"name": "b", "kind": "scalar", **number},
            {"name": "difference", "kind": "returned", **number},
        ],
        "build": {"library": "libm.so.6"},
    }
    folder = foreign(tmp_path / "f", manifest)
    with pytest.raises(ImportRefusedError, match="has no golden vectors; unproved=True"):
        import_kernel(folder)
    fdim = import_kernel(folder, unproved=True)
    assert fdim(7, 4) == 3.0
    program = ferryvm.compile("(host-function fdim (f64 f64) f64) (print! (fdim 7.0 5.0))")
    assert ferryvm.Engine("threaded").instantiate(program, hosts=[fdim.host]).output == "2.0\n"


def test_the_manifest_on_the_page_is_imported(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "export.md").read_text("utf-8")
    (text,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    vectors = SAXPY_VECTORS.replace("\ns 2\n", "\n").replace("o 3 2", "o 2 2")
    folder = foreign(tmp_path / "f", json.loads(text), saxpy_c=SAXPY_C, vectors_txt=vectors)
    saxpy = import_kernel(folder)
    x, y = np.ones(3, np.float32), np.arange(3, dtype=np.float32)
    saxpy(2.0, x, y)
    assert y.tolist() == [2, 3, 4]
    with pytest.raises(CallError, match="x has 2 elements; n = 3 are expected"):
        saxpy(2.0, x[:2], y)


LAUNCH = {"items": "(n + 7) // 8 * 8", "group": 8}


@pytest.mark.parametrize(
    "manifest", [SAXPY, SAXPY | {"target": "opencl", "launch": LAUNCH, "status": None}]
)
def test_a_manifest_by_hand_obeys_the_published_schema(manifest: dict[str, Any]) -> None:
    text = (resources.files("ferryvm.portable") / "manifest.schema.json").read_text("utf-8")
    jsonschema.validate(manifest, json.loads(text))


# --- bad input ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"format": "ferryvm-export/2"}, "format: Input should be 'ferryvm-export/1'"),
        ({"entry": "a b"}, "entry: String should match"),
        ({"arguments": [{"name": "x", "kind": "vector", "type": "f32"}]}, r"arguments\[0\].kind: "),
        ({"arguments": [{"name": "x", "kind": "scalar", "type": "u8"}]}, "'x' is u8; one of i32"),
        (
            {"arguments": [{"name": "n", "kind": "length", "type": "i32", "of": "x"}]},
            "'n' is the length of 'x', which is no array",
        ),
        ({"arguments": SAXPY["arguments"] * 2}, "two arguments are called 'n'"),
        ({"arguments": [{"name": "x", **ARRAY_, "shape": ["m"]}]}, "the shape of 'x': 'm' is no"),
        ({"arguments": [{"name": "x", **ARRAY_, "shape": ["1 +"]}]}, "'1 \\+' is no expression"),
        ({"launch": {"items": "m"}}, "the launch: 'm' is no argument that is an integer"),
        ({"build": {"sources": ["../saxpy.c"]}}, r"build.sources\[0\]: String should match"),
    ],
)
def test_a_fault_of_a_manifest_is_one_line(
    tmp_path: Path, fields: dict[str, Any], message: str
) -> None:
    folder = foreign(tmp_path / "f", SAXPY | fields)
    with pytest.raises(ImportRefusedError, match=rf"^[^\n]*manifest.json: [^\n]*{message}[^\n]*$"):
        import_kernel(folder)


def test_an_unknown_target_is_refused_with_those_that_can_be_imported(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="no target that can be imported: 'cuda'"):
        import_kernel(foreign(tmp_path / "f", SAXPY | {"target": "cuda"}))


def test_a_folder_without_a_manifest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FerryError, match=r"manifest.json: cannot be read: No such file"):
        import_kernel(tmp_path)
    with pytest.raises(ImportRefusedError, match="is no folder"):
        import_kernel(tmp_path / "missing")


def test_a_device_is_for_targets_that_have_some(exported: Folder) -> None:
    with pytest.raises(ImportRefusedError, match="target c has no devices"):
        import_kernel(exported("dot"), device="gpu")


@pytest.mark.parametrize(
    ("text", "value"), [("n", 5), ("2 * (n - 1)", 8), ("(n + 3) // 4", 2), (7, 7)]
)
def test_a_formula_has_a_value(text: str | int, value: int) -> None:
    assert golden.expression(text, {"n": 5}) == value


@pytest.mark.parametrize("text", ["m", "n ** 9", "f(n)", "n +", "n // 0", "1.5", "True"])
def test_what_is_no_formula_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=f"expression {re.escape(repr(text))}"):
        golden.expression(text, {"n": 5})


def test_the_current_folder_is_exported_to_and_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = ferry("export", KERNELS, "--region", "dot", "--vectors", "2", "-o", ".")
    assert done.code == 0, done.err
    done = ferry("import", ".")
    assert done.code == 0, done.err
    assert "dot (f64[] f64[]) -> (f64), 2 vectors pass (c)" in done.out
