# SPDX-License-Identifier: Apache-2.0
"""Exported kernels prove themselves on a GPU, from Python and from C:
`pytest tests/portable -m gpu`."""

from __future__ import annotations

from pathlib import Path

import pytest

import ferryvm
from ferryvm.portable import ExportOptions, export_region
from ferryvm.verify import verify

from .conftest import Folder
from .opencl_host import from_c, gpu, in_python
from .test_group import GROUPS
from .test_group import KERNELS as WITH_BARRIERS
from .test_opencl import FUNCTIONS
from .test_program import KERNELS, PROGRAMS, exported_kernel, exported_program

HOSTS = {"python": in_python, "c": from_c}
pytestmark = [pytest.mark.gpu, pytest.mark.parametrize("host", HOSTS)]


def prove(folder: Path, host: str) -> None:
    checked = HOSTS[host](folder, gpu())
    print(checked.stdout, end="")  # for a record: -rP
    assert checked.returncode == 0, checked.stdout
    assert " vectors pass" in checked.stdout


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_or_launch_proves_itself(opencl: Folder, name: str, host: str) -> None:
    gpu()
    prove(opencl(name), host)


@pytest.mark.parametrize("name", WITH_BARRIERS)
def test_a_kernel_with_barriers_proves_itself(tmp_path: Path, name: str, host: str) -> None:
    gpu()
    verified = verify(ferryvm.read(GROUPS))
    prove(
        export_region(verified, name, tmp_path / "folder", ExportOptions("opencl")).directory, host
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_proves_itself(tmp_path: Path, name: str, host: str) -> None:
    gpu()
    prove(exported_program(name, tmp_path / "folder", "opencl").directory, host)


@pytest.mark.parametrize("name", KERNELS)
def test_a_python_kernel_proves_itself(tmp_path: Path, name: str, host: str) -> None:
    gpu()
    prove(exported_kernel(name, tmp_path / "folder", "opencl").directory, host)
