"""How many threads auto stands for: cores, kinds of cores, quotas and memory nodes."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from localglm.engine.cores import Cores, auto_threads, cores_here, linux, windows


def machine(
    root: Path, cores: dict[int, tuple[int, int]], nodes: tuple[str, ...] = ("0-63",)
) -> Path:
    """Write a sysfs: cores maps a logical processor to its package and core."""
    for cpu, (package, core) in cores.items():
        at = root / f"system/cpu/cpu{cpu}/topology"
        at.mkdir(parents=True)
        (at / "physical_package_id").write_text(f"{package}\n")
        (at / "core_id").write_text(f"{core}\n")
    for number, cpus in enumerate(nodes):
        at = root / f"system/node/node{number}"
        at.mkdir(parents=True)
        (at / "cpulist").write_text(f"{cpus}\n")
    return root


TWO_PER_CORE = {cpu: (0, cpu % 4) for cpu in range(8)}


def test_two_threads_of_a_core_are_one_core(tmp_path: Path) -> None:
    root = machine(tmp_path, TWO_PER_CORE)
    assert linux.topology(frozenset(range(8)), root) == linux.Topology(4, None, 1)
    assert linux.topology({0, 4}, root).physical == 1
    assert linux.topology({0, 1}, root).physical == 2


def test_equal_core_numbers_of_two_packages_are_two_cores(tmp_path: Path) -> None:
    root = machine(tmp_path, {0: (0, 0), 1: (1, 0)}, ("0", "1"))
    assert linux.topology({0, 1}, root) == linux.Topology(2, None, 2)
    assert linux.topology({1}, root).nodes == 1


def test_processors_without_a_description_count_one_each(tmp_path: Path) -> None:
    assert linux.topology({0, 1, 2}, tmp_path) == linux.Topology(3, None, 1)


def test_efficiency_cores_are_left_out(tmp_path: Path) -> None:
    fast = {cpu: (0, cpu // 2) for cpu in range(8)}
    root = machine(tmp_path, fast | {cpu: (0, cpu) for cpu in range(8, 16)})
    (root / "cpu_atom").mkdir()
    (root / "cpu_atom/cpus").write_text("8-15\n")
    assert linux.topology(frozenset(range(16)), root) == linux.Topology(12, 4, 1)
    assert linux.topology(frozenset(range(8, 16)), root) == linux.Topology(8, None, 1)


def test_capacities_tell_fast_cores_from_slow_ones(tmp_path: Path) -> None:
    root = machine(tmp_path, {cpu: (0, cpu) for cpu in range(8)})
    for cpu, capacity in enumerate((250, 250, 250, 250, 870, 870, 870, 1024)):
        (root / f"system/cpu/cpu{cpu}/cpu_capacity").write_text(f"{capacity}\n")
    assert linux.topology(frozenset(range(8)), root).fast == 4
    assert linux.topology({4, 5}, root).fast is None


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("0-3,8", {0, 1, 2, 3, 8}), ("5", {5}), ("", set()), ("0-1,4-5\n", {0, 1, 4, 5})],
)
def test_lists_of_processors_are_read(text: str, numbers: set[int]) -> None:
    assert linux.cpu_list(text) == numbers


def groups(tmp_path: Path, membership: str, files: dict[str, str]) -> tuple[Path, Path]:
    member = tmp_path / "cgroup"
    member.write_text(membership)
    root = tmp_path / "fs"
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return member, root


def test_the_least_quota_of_the_group_and_those_above_counts(tmp_path: Path) -> None:
    files = {
        "a/b/cpu.max": "max 100000\n",
        "a/cpu.max": "250000 100000\n",
        "cpu.max": "800000 100000\n",
    }
    assert linux.quota(*groups(tmp_path, "0::/a/b\n", files)) == 2.5


def test_a_container_that_sees_its_group_as_the_root_has_its_quota(tmp_path: Path) -> None:
    given = groups(tmp_path, "0::/../../docker/x\n", {"cpu.max": "150000 100000\n"})
    assert linux.quota(*given) == 1.5


def test_quotas_of_the_first_version_are_read(tmp_path: Path) -> None:
    files = {
        "cpu,cpuacct/job/cpu.cfs_quota_us": "300000\n",
        "cpu,cpuacct/job/cpu.cfs_period_us": "100000\n",
    }
    membership = "4:memory:/job\n3:cpu,cpuacct:/job\n"
    assert linux.quota(*groups(tmp_path, membership, files)) == 3.0


@pytest.mark.parametrize(
    ("membership", "files"),
    [
        ("0::/a\n", {"a/cpu.max": "max 100000\n"}),
        ("1:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}),
        ("4:memory:/job\n", {"memory/job/cpu.cfs_quota_us": "1\n"}),
        ("", {}),
    ],
)
def test_no_limit_is_no_quota(tmp_path: Path, membership: str, files: dict[str, str]) -> None:
    assert linux.quota(*groups(tmp_path, membership, files)) is None


def test_a_system_without_control_groups_has_no_quota(tmp_path: Path) -> None:
    assert linux.quota(tmp_path / "none", tmp_path) is None


@pytest.mark.parametrize(
    ("cores", "threads"),
    [
        (Cores(16, 8), 8),
        (Cores(16, 12, fast=4), 4),
        (Cores(16, 8, quota=2.9), 2),
        (Cores(16, 8, quota=0.5), 1),
        (Cores(3, 8), 3),
        (Cores(16, 8, quota=64.0), 8),
    ],
)
def test_auto_takes_fast_physical_cores_within_the_quota(cores: Cores, threads: int) -> None:
    assert auto_threads(cores) == threads


def record(kind: int, efficiency: int) -> bytes:
    return struct.pack("<IIBB22x", kind, 32, 1, efficiency)


def test_windows_cores_of_the_highest_class_are_the_fast_ones() -> None:
    mixed = record(0, 1) * 6 + record(0, 0) * 8 + record(3, 5)
    assert windows.fastest_of(mixed) == 6
    assert windows.fastest_of(record(0, 0) * 8) is None
    assert windows.fastest_of(b"") is None


def test_this_machine_has_at_least_one_core() -> None:
    cores = cores_here()
    assert 1 <= auto_threads(cores) <= cores.logical
    assert cores.nodes >= 1
