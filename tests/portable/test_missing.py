# SPDX-License-Identifier: Apache-2.0
"""A receiver's machine without a driver or a compiler: one line says so, and what to install."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ferryvm.errors import FerryError
from ferryvm.portable import ExportOptions, export_region
from ferryvm.portable.imported.kernel import import_kernel
from ferryvm.verify import Verified

from .conftest import Folder, run
from .opencl_host import from_c


@pytest.mark.parametrize("is_error", [True, False])
def test_python_says_that_there_is_no_platform(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], is_error: bool
) -> None:
    pyopencl = pytest.importorskip("pyopencl")
    from ferryvm.portable.harness import check_opencl

    def platforms() -> list[object]:
        if is_error:  # as the loader has it
            raise pyopencl.LogicError("clGetPlatformIDs failed: PLATFORM_NOT_FOUND_KHR")
        return []

    monkeypatch.setattr(pyopencl, "get_platforms", platforms)
    monkeypatch.setattr("sys.argv", ["check.py"])
    assert check_opencl.main() == 2
    said = capsys.readouterr().err
    assert said.startswith("check.py: no OpenCL platform is installed: install the driver")
    assert said.count("\n") == 1


def test_python_says_which_package_is_missing(opencl: Folder) -> None:
    said = run(opencl("axpy"), "python3", "-S", "-E", "check.py")
    assert said.returncode == 2
    assert re.fullmatch(
        r"check.py: No module named 'numpy'; it needs: pip install numpy pyopencl\n", said.stdout
    )


def test_a_device_that_takes_no_spirv_is_named(kernels: Verified, tmp_path: Path) -> None:
    pyopencl = pytest.importorskip("pyopencl")
    from ferryvm.portable.harness.check_opencl import takes_spirv

    devices = [each for one in pyopencl.get_platforms() for each in one.get_devices()]
    refusing = [each for each in devices if not takes_spirv(each)]
    if not refusing:
        pytest.skip("all devices take SPIR-V")
    export_region(kernels, "axpy", tmp_path / "folder", ExportOptions("spirv", vectors=1))
    platform = refusing[0].platform.name
    with pytest.raises(FerryError, match=r": .* takes no SPIR-V; name another device$"):
        import_kernel(tmp_path / "folder", device=platform)


def test_c_says_that_there_is_no_platform(
    opencl: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path))
    said = from_c(opencl("axpy"))
    assert said.returncode != 0
    assert said.stdout.startswith("no OpenCL platform is installed: install the driver")
    assert "-1001" not in said.stdout


OLD_CLANG = '#!/bin/sh\ncase "$*" in *__clang_major__*|*-E*) echo 14;; *) exit 1;; esac\n'


@pytest.mark.parametrize(
    ("compiler", "version"), [("./old", "14"), ("gcc", "unknown"), ("./none", "unknown")]
)
def test_a_makefile_of_llvm_names_the_version_of_clang(
    kernels: Verified, tmp_path: Path, compiler: str, version: str
) -> None:
    export_region(kernels, "axpy", tmp_path / "folder", ExportOptions("llvm", vectors=1))
    old = tmp_path / "folder" / "old"
    old.write_text(OLD_CLANG, "utf-8")
    old.chmod(0o755)
    done = run(tmp_path / "folder", "make", "-s", "check", f"CC={compiler}")
    assert done.returncode == 2
    wanted = f"axpy.ll needs clang 15 or later; {compiler} is version {version}: make CC=NAME"
    assert done.stdout.splitlines()[0] == wanted
