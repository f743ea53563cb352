# SPDX-License-Identifier: Apache-2.0
"""Exported folders for tests, made once a session, and built where no ferryvm is found."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import ferryvm
from ferryvm.portable import ExportOptions, export_region
from ferryvm.verify import Verified, verify

KERNELS = Path(__file__).with_name("kernels.skiff")

Folder = Callable[..., Path]


@pytest.fixture(scope="session")
def kernels() -> Verified:
    return verify(ferryvm.read(KERNELS))


@pytest.fixture(scope="session")
def exported(kernels: Verified, tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """The folder of a region in C, by its name."""
    return _folders(kernels, tmp_path_factory, "c")


@pytest.fixture(scope="session")
def opencl(kernels: Verified, tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """The folder of a region in OpenCL C, by its name."""
    return _folders(kernels, tmp_path_factory, "opencl")


def _folders(kernels: Verified, factory: pytest.TempPathFactory, target: str) -> Folder:
    made: dict[str, Path] = {}

    def export(name: str) -> Path:
        if name not in made:
            made[name] = factory.mktemp("export") / "folder"
            export_region(kernels, name, made[name], ExportOptions(target))
        return made[name]

    return export


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command in a folder, in an environment that has a compiler and nothing of ferryvm."""
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C", "CFLAGS": "-O0"}
    return subprocess.run(
        words,
        cwd=folder,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=30,
        check=False,
    )
