# SPDX-License-Identifier: Apache-2.0
"""What `ferry doctor` says of OpenCL, on machines that exist only here: planted drivers,
devices."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from ferryvm.backend import Finding
from ferryvm_backends.opencl import BACKEND, diagnosis
from ferryvm_backends.opencl.device import POCL, Device
from ferryvm_backends.opencl.diagnosis import report
from ferryvm_backends.opencl.loader import Places

SETTINGS = (
    "OCL_ICD_VENDORS",
    "OPENCL_VENDOR_PATH",
    "OCL_ICD_FILENAMES",
    "POCL_DEVICES",
    "FERRYVM_OPENCL_DEVICE",
    "LD_LIBRARY_PATH",
)
CPU = Device(
    platform=POCL,
    platform_version="OpenCL 3.0 PoCL 3.0",
    place=0,
    name="basic-Fast CPU",
    kind="cpu",
    version="OpenCL 3.0 basic",
    driver="3.0",
    has_f64=True,
    has_exact_f32=True,
    has_atomics_64=True,
    shares_memory=True,
    is_little_endian=True,
    address_bits=64,
    memory=8 << 30,
    largest_buffer=2 << 30,
    caches_builds=True,
    handle=None,
)
THREADS = dataclasses.replace(CPU, place=1, name="pthread-Fast CPU")
GPU = dataclasses.replace(
    CPU, platform="NVIDIA CUDA", name="Card", kind="gpu", shares_memory=False, driver="550.54"
)


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch, empty_cache: Path) -> None:
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)


@dataclasses.dataclass
class Planted:
    """A machine's folders, empty until a test puts something there."""

    root: Path
    linker: str = ""
    """What `ldconfig -p` prints."""
    why_not_loaded: str = ""

    def __post_init__(self) -> None:
        for name in ("vendors", "bundled", "nvidia/lib64", "lib", "dev"):
            (self.root / name).mkdir(parents=True)
        self.put("bundled/libpocl-12.so")
        self.put("bundled/pocl.icd", "libpocl-12.so")

    def put(self, name: str, content: str = "") -> Path:
        """A file with this content."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
        return path

    @property
    def places(self) -> Places:
        return Places(
            vendors=self.root / "vendors",
            bundled=self.root / "bundled",
            folders=(self.root / "nvidia" / "lib64", self.root / "lib"),
            nodes=self.root / "dev",
            own=self.root / "own",
            ldconfig=lambda: self.linker,
            why_not_loaded=lambda library: self.why_not_loaded,
        )

    def problems(
        self, found: Sequence[Device] = (CPU, THREADS), platforms: Sequence[str] = (POCL,)
    ) -> list[Finding]:
        """What is wrong with it."""
        return [f for f in report(found, platforms, self.places, "2026.1") if f.problem]


@pytest.fixture
def machine(tmp_path: Path) -> Planted:
    return Planted(tmp_path / "machine")


def of(findings: Sequence[Finding], subject: object) -> list[Finding]:
    """The findings about a subject."""
    return [finding for finding in findings if finding.subject == str(subject)]


# --- devices --------------------------------------------------------------------------------


def test_a_machine_with_nothing_wrong_has_no_problem(machine: Planted) -> None:
    assert machine.problems() == []


def test_every_device_is_listed_with_what_it_can_do(machine: Planted) -> None:
    found = list(report([CPU, THREADS, GPU], [POCL, "NVIDIA CUDA"], machine.places, "2026.1"))
    (card,) = of(found, GPU)
    assert card.facts == {
        "kind": "gpu",
        "version": "OpenCL 3.0 basic",
        "driver": "550.54",
        "f64": True,
        "exact f32": True,
        "64-bit atomics": True,
        "unified memory": False,
        "memory is": "copied",
        "memory bytes": 8 << 30,
        "largest buffer bytes": 2 << 30,
        "driver keeps builds": True,
        "chosen by": "gpu, NVIDIA CUDA:Card",
        "chosen now": False,
    }
    assert [finding.facts.get("memory is") for finding in of(found, CPU)] == ["wrapped"]


def test_the_device_that_is_chosen_says_by_what(
    machine: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    def chosen() -> dict[str, object]:
        found = diagnosis.device_findings([CPU, THREADS, GPU])
        return {f.subject: f.facts["chosen now"] for f in found if f.facts["chosen now"]}

    assert chosen() == {str(CPU): "by default"}
    monkeypatch.setenv("FERRYVM_OPENCL_DEVICE", "gpu")
    assert chosen() == {str(GPU): "by FERRYVM_OPENCL_DEVICE=gpu"}


def test_only_the_first_of_two_equal_devices_has_names() -> None:
    twins = [GPU, dataclasses.replace(GPU, place=1)]
    found = [finding.facts["chosen by"] for finding in diagnosis.device_findings(twins)]
    assert found == ["gpu, NVIDIA CUDA:Card", "no name"]


def test_a_device_without_f64_is_told_with_one_that_has_it(machine: Planted) -> None:
    weak = dataclasses.replace(GPU, has_f64=False)
    (problem,) = machine.problems([CPU, THREADS, weak], [POCL, "NVIDIA CUDA"])
    assert problem.subject == str(weak)
    assert problem.problem == "it has no f64: regions with f64 are refused"
    assert problem.remedy == "export FERRYVM_OPENCL_DEVICE=cpu"


def test_without_another_device_the_remedy_is_another_backend() -> None:
    weak = dataclasses.replace(GPU, has_f64=False, has_exact_f32=False)
    no_f64, no_f32 = [f for f in diagnosis.device_findings([weak]) if f.problem]
    assert (
        no_f32.problem == "it does not compute f32 as IEEE 754 says: regions with f32 are refused"
    )
    assert "another backend, such as llvm" in no_f64.remedy
    assert no_f32.remedy == no_f64.remedy


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"is_little_endian": False}, "it is big-endian"),
        ({"address_bits": 32}, "it has addresses of 32 bits, not of 64"),
    ],
    ids=["big-endian", "32-bit"],
)
def test_a_device_on_which_nothing_runs_says_why(change: dict[str, int], why: str) -> None:
    odd = dataclasses.replace(GPU, has_f64=False, **change)
    found = [f for f in diagnosis.device_findings([odd, CPU, THREADS]) if f.problem]
    assert [f.problem for f in found] == [f"nothing runs on it: {why}"]
    assert found[0].remedy == "export FERRYVM_OPENCL_DEVICE=cpu"


def test_pocl_without_basic_is_slower_where_the_user_chose_so(
    machine: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert machine.problems([THREADS]) == []
    monkeypatch.setenv("POCL_DEVICES", "pthread")
    (problem,) = machine.problems([THREADS])
    assert "POCL_DEVICES leaves out PoCL's device `basic`" in problem.problem
    assert problem.remedy == "unset POCL_DEVICES"
    assert machine.problems([CPU, THREADS]) == []


def test_a_name_that_chooses_no_device_is_told_with_those_that_do(
    machine: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FERRYVM_OPENCL_DEVICE", "gpu")
    (problem,) = machine.problems()
    assert problem.subject == "FERRYVM_OPENCL_DEVICE"
    assert problem.problem == "no device here is called 'gpu'"
    names = f"cpu, '{CPU}', '{THREADS}'"
    assert problem.remedy == f"unset FERRYVM_OPENCL_DEVICE, or choose one of: {names}"


# --- drivers --------------------------------------------------------------------------------


def test_a_driver_of_nvidia_that_no_icd_file_names_is_told_with_the_commands(
    machine: Planted,
) -> None:
    library = machine.put("nvidia/lib64/libnvidia-opencl.so.1")
    machine.put("nvidia/lib64/libnvidia-opencl.so.550.54")
    machine.put("dev/nvidia0")
    (problem,) = machine.problems()
    own = machine.places.own
    assert problem.subject == "driver of NVIDIA"
    assert problem.facts == {"library": str(library)}
    assert problem.problem == "it is there and not used: no .icd file that is read names it"
    assert problem.remedy == (
        f"mkdir -p {own}; echo {library} > {own}/nvidia.icd; export OCL_ICD_VENDORS={own}"
    )


def test_the_commands_are_the_remedy(machine: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.put("vendors/other.icd", str(machine.put("lib/libother.so")))
    library = machine.put("nvidia/lib64/libnvidia-opencl.so.1")
    (problem,) = machine.problems()
    subprocess.run(["sh", "-c", problem.remedy], check=True)
    own = machine.places.own
    assert (own / "nvidia.icd").read_text() == f"{library}\n"
    monkeypatch.setenv("OCL_ICD_VENDORS", str(own))
    assert machine.problems((CPU, GPU), (POCL, "NVIDIA CUDA")) == []


def test_the_commands_keep_what_is_read_now(machine: Planted) -> None:
    machine.put("vendors/other.icd", str(machine.put("lib/libother.so")))
    machine.put("nvidia/lib64/libnvidia-opencl.so.1")
    (problem,) = machine.problems()
    assert f"; cp {machine.places.vendors}/*.icd {machine.places.own}; echo " in problem.remedy


def test_a_folder_that_is_named_already_gets_the_driver_s_file(
    machine: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = machine.put("nvidia/lib64/libnvidia-opencl.so.1")
    mine = machine.put("mine/other.icd", str(machine.put("lib/libother.so"))).parent
    monkeypatch.setenv("OCL_ICD_VENDORS", str(mine))
    (problem,) = machine.problems()
    assert problem.remedy == f"echo {library} > {mine}/nvidia.icd"


@pytest.mark.parametrize(
    ("name", "driver"), [("libintelocl.so", "Intel"), ("libpocl.so.2.12.0", "PoCL")]
)
def test_other_drivers_without_a_platform_are_told_too(
    machine: Planted, name: str, driver: str
) -> None:
    library = machine.put(f"lib/{name}")
    machine.root.joinpath("bundled/pocl.icd").unlink()
    (problem,) = machine.problems([GPU], ["NVIDIA CUDA"])
    assert (problem.subject, problem.facts) == (f"driver of {driver}", {"library": str(library)})


def test_a_driver_is_found_in_the_linker_s_cache_and_not_one_of_32_bits(machine: Planted) -> None:
    name = "libnvidia-opencl.so.1"
    machine.put("dev/nvidia0")
    old, new = machine.put(f"i386/{name}"), machine.put(f"x86/{name}")
    machine.linker = (
        f"2 libs found in cache\n\t{name} (libc6) => {old}\n\t{name} (libc6,x86-64) => {new}\n"
    )
    (problem,) = machine.problems()
    assert problem.facts == {"library": str(new)}


def test_a_library_whose_platform_is_there_is_no_problem(machine: Planted) -> None:
    machine.put("vendors/nvidia.icd", str(machine.put("nvidia/lib64/libnvidia-opencl.so.1")))
    assert machine.problems([CPU, GPU], [POCL, "NVIDIA CUDA"]) == []


def test_a_library_without_a_card_leaves_a_doubt(machine: Planted) -> None:
    machine.put("nvidia/lib64/libnvidia-opencl.so.1")
    (problem,) = machine.problems()
    assert problem.problem.endswith("/nvidia0 or the like, so perhaps no card either")


def test_a_card_without_a_library_is_told_with_what_a_container_needs(machine: Planted) -> None:
    machine.put("dev/nvidiactl")
    assert machine.problems() == []
    card = machine.put("dev/nvidia5")
    (problem,) = machine.problems()
    assert problem.problem == f"there is a card ({card}) and no libnvidia-opencl.so.1"
    assert "NVIDIA_DRIVER_CAPABILITIES=compute,utility" in problem.remedy


def test_an_icd_file_whose_library_is_elsewhere_is_told_with_the_commands(machine: Planted) -> None:
    machine.put("dev/nvidia0")
    file = machine.put("vendors/nvidia.icd", "libnvidia-opencl.so.1\n")
    library = machine.put("nvidia/lib64/libnvidia-opencl.so.1")
    (problem,) = machine.problems()
    assert problem.problem == (
        f"it is there and not used: {file} names libnvidia-opencl.so.1, which is not found"
    )
    assert f"echo {library} > {machine.places.own}/nvidia.icd" in problem.remedy


def test_an_icd_file_that_names_nothing_that_is_there_is_told(machine: Planted) -> None:
    file = machine.put("vendors/other.icd", "/opt/none/libother.so\n")
    empty = machine.put("vendors/void.icd")
    gone, void = machine.problems()
    assert (gone.subject, void.subject) == (str(file), str(empty))
    assert gone.problem == "it names /opt/none/libother.so, which is not found"
    assert gone.remedy == f"install that driver again, or rm {file}"
    assert (void.problem, void.remedy) == ("it names no library", f"rm {empty}")


def test_a_driver_that_is_read_and_offers_no_platform_says_why_if_it_cannot_be_loaded(
    machine: Planted,
) -> None:
    machine.put("dev/nvidia0")
    library = machine.put("nvidia/lib64/libnvidia-opencl.so.1")
    file = machine.put("vendors/nvidia.icd", str(library))
    (problem,) = machine.problems()
    assert problem.problem == f"no platform is offered by {library}, named by {file}, which loads"
    assert "nvidia-smi" in problem.remedy
    machine.why_not_loaded = "libcuda.so.1: cannot open shared object file"
    (problem,) = machine.problems()
    assert problem.problem.endswith(f": it cannot be loaded: {machine.why_not_loaded}")


def test_why_a_library_cannot_be_loaded_is_what_the_linker_says(tmp_path: Path) -> None:
    library = tmp_path / "libtorn.so"
    library.write_text("no library")
    said = Places().why_not_loaded(str(library))
    assert said.startswith(f"{library}: ")


# --- what the environment says --------------------------------------------------------------


def test_no_platform_at_all_is_told_with_what_to_install(machine: Planted) -> None:
    machine.root.joinpath("bundled/pocl.icd").unlink()
    (problem,) = machine.problems([], [])
    assert (problem.subject, problem.problem) == ("pyopencl", "it finds no platform")
    assert problem.remedy == "pip install pocl-binary-distribution, or install a driver"


def test_vendors_that_are_not_there_are_told_and_pocl_with_them(
    machine: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OCL_ICD_VENDORS", "/nowhere/vendors")
    none, setting = machine.problems([], [])
    assert none.facts["OCL_ICD_VENDORS"] == "/nowhere/vendors"
    assert setting.subject == "OCL_ICD_VENDORS"
    assert setting.problem.startswith("there is no /nowhere/vendors, be it a folder, ")
    assert setting.remedy == "unset OCL_ICD_VENDORS"


def test_vendors_without_an_icd_file_are_told(
    machine: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = machine.put("mine/readme.txt").parent
    monkeypatch.setenv("OCL_ICD_VENDORS", str(folder))
    (setting,) = machine.problems()
    assert setting.problem == f"the folder {folder} has no .icd file"


def test_vendors_may_name_one_icd_file_or_one_library(
    machine: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = machine.put("nvidia/lib64/libnvidia-opencl.so.1")
    machine.put("lib/libintelocl.so")
    file = machine.put("mine/nvidia.icd", str(library))
    for named in (file, library):
        monkeypatch.setenv("OCL_ICD_VENDORS", str(named))
        assert machine.problems([GPU], ["NVIDIA CUDA"]) == [], "no other driver is wanted"


def test_a_variable_of_another_loader_is_told_where_pyopencl_brings_its_own(
    machine: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OCL_ICD_FILENAMES", "libother.so")
    (setting,) = machine.problems()
    assert setting.subject == "OCL_ICD_FILENAMES"
    assert setting.problem == "the loader that pyopencl brings does not know it"


def test_without_pyopencl_the_remedy_is_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    (missing,) = BACKEND.examine()
    assert missing.problem.startswith("it cannot be imported: ")
    assert missing.remedy == "pip install pyopencl pocl-binary-distribution"


# --- folders --------------------------------------------------------------------------------


@pytest.fixture
def below_a_file(tmp_path: Path) -> Path:
    """A folder that nobody can make."""
    (tmp_path / "file").touch()
    return tmp_path / "file" / "folder"


def test_a_cache_that_cannot_be_written_costs_builds(
    below_a_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FERRYVM_CACHE_DIR", str(below_a_file))
    (problem,) = diagnosis.folder_findings()
    assert problem.problem == (
        f"cache {below_a_file} cannot be used: Not a directory; each process builds its kernels again"
    )
    assert problem.remedy.startswith("set FERRYVM_CACHE_DIR to ")


def _none() -> str:
    raise FileNotFoundError(2, "No usable temporary directory found")


def test_without_a_temporary_directory_nothing_can_be_built(below_a_file: Path) -> None:
    ways: list[Callable[[], str]] = [lambda: str(below_a_file), _none]
    for way in ways:
        (problem,) = diagnosis.folder_findings(way)
        assert problem.subject == "temporary directory"
        assert problem.problem.endswith("; no kernel can be built")
        assert problem.remedy.startswith("export TMPDIR=")


def test_pocl_offers_nothing_where_its_cache_cannot_be_written(
    machine: Planted, below_a_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POCL_CACHE_DIR", str(below_a_file))
    (problem,) = machine.problems([], [POCL])
    assert problem.subject == POCL
    assert problem.problem == (
        f"the platform has no device: its cache {below_a_file} cannot be written: Not a directory"
    )
    assert problem.remedy.startswith("export POCL_CACHE_DIR=")


# --- this machine ---------------------------------------------------------------------------


def test_this_machine_s_devices_are_found_and_one_is_chosen() -> None:
    found = list(BACKEND.examine())
    assert found[0].subject == "pyopencl"
    assert any(finding.facts.get("chosen now") for finding in found)
