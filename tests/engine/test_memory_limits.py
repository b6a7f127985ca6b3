"""What limits the memory of a process, from readings of each kind."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from localglm.engine.memory_commit import free_commit
from localglm.engine.memory_groups import GroupMemory, group_memory
from localglm.engine.memory_limits import Reading, ceilings, group_reserve, read_memory, reserve_of
from localglm.engine.own_memory import anonymous_bytes, anonymous_in

if TYPE_CHECKING:
    from pathlib import Path

GIB = 1 << 30


def write(folder: Path, files: dict[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)


def test_a_group_of_version_2_leaves_its_limit_less_what_cannot_be_dropped(tmp_path: Path) -> None:
    member = tmp_path / "cgroup"
    member.write_text("0::/user/chat\n")
    write(tmp_path / "fs", {})
    write(tmp_path / "fs/user", {"memory.max": "max", "memory.current": "5"})
    stat = "anon 300\nfile 700\nactive_file 150\ninactive_file 250\n"
    write(
        tmp_path / "fs/user/chat",
        {"memory.max": "2000\n", "memory.current": "1000\n", "memory.stat": stat},
    )
    found = group_memory(member, tmp_path / "fs")
    assert found == [GroupMemory(tmp_path / "fs/user/chat", 2000, 2000 - 1000 + 400)]


def test_the_groups_around_count_too(tmp_path: Path) -> None:
    member = tmp_path / "cgroup"
    member.write_text("0::/user/chat\n")
    for at, limit in (("fs/user", "900"), ("fs/user/chat", "2000")):
        write(tmp_path / at, {"memory.max": limit, "memory.current": "100"})
    assert [group.free for group in group_memory(member, tmp_path / "fs")] == [1900, 800]


def test_a_group_of_version_1_counts_what_lies_below_it(tmp_path: Path) -> None:
    member = tmp_path / "cgroup"
    member.write_text("5:cpu,cpuacct:/x\n3:memory:/box\n")
    write(tmp_path / "fs/memory", {"memory.limit_in_bytes": "9223372036854771712",
                                   "memory.usage_in_bytes": "77"})  # fmt: skip
    stat = "cache 9\ntotal_active_file 10\ntotal_inactive_file 20\n"
    write(tmp_path / "fs/memory/box", {"memory.limit_in_bytes": "500", "memory.stat": stat,
                                       "memory.usage_in_bytes": "450"})  # fmt: skip
    assert [group.free for group in group_memory(member, tmp_path / "fs")] == [80]


def test_a_container_sees_its_own_group_as_the_root(tmp_path: Path) -> None:
    member = tmp_path / "cgroup"
    member.write_text("0::/../outside\n")
    write(tmp_path / "fs", {"memory.max": "600", "memory.current": "100"})
    assert [group.free for group in group_memory(member, tmp_path / "fs")] == [500]


def test_no_group_is_no_limit(tmp_path: Path) -> None:
    assert group_memory(tmp_path / "none", tmp_path / "fs") == []


def test_every_limit_is_named_and_counts_what_the_process_holds_already() -> None:
    group = GroupMemory(tmp := __import__("pathlib").Path("/g"), 4 * GIB, GIB)
    reading = Reading(
        total=16 * GIB, available=8 * GIB, own=GIB // 4, groups=(group,),
        free_address_space=5 * GIB, free_data=6 * GIB, free_commit=7 * GIB,
    )  # fmt: skip
    found = {limit.remedy: limit for limit in ceilings(reading, 3 * GIB)}
    own = GIB // 4
    assert found["close other programs"].nbytes == 8 * GIB + own - GIB // 2
    assert found["raise the limit of the group"].nbytes == GIB + own - group_reserve(4 * GIB)
    assert found["a larger --memory"].nbytes == 3 * GIB
    assert str(tmp) in found["raise the limit of the group"].reason
    rest = {"ulimit -v unlimited": 5, "ulimit -d unlimited": 6, "a larger page file": 7}
    for remedy, size in rest.items():
        assert found[remedy].nbytes == size * GIB + own
    assert {name for name, limit in found.items() if not limit.counts_mapped} == set(rest)


def test_without_limits_of_its_own_only_the_computer_counts() -> None:
    (only,) = ceilings(Reading(total=GIB, available=GIB // 8, own=0), None)
    assert only.nbytes == 0  # less is available than is left alone
    assert "128.0 MiB of 1.0 GiB are available" in only.reason


def test_the_reserve_grows_with_the_computer_within_bounds() -> None:
    sizes = [GIB // 4, GIB, 16 * GIB, 64 * GIB, 1024 * GIB]
    assert [reserve_of(size) for size in sizes] == [
        GIB // 16, GIB // 4, GIB // 2, 2 * GIB, 2 * GIB,
    ]  # fmt: skip


def test_own_memory_is_anonymous_and_shared_pages_not_those_of_files() -> None:
    text = "Name:\tx\nVmRSS:\t900 kB\nRssAnon:\t  100 kB\nRssFile:\t 700 kB\nRssShmem:\t 7 kB\n"
    assert anonymous_in(text) == 107 * 1024


def test_the_readings_of_this_computer_make_sense() -> None:
    reading = read_memory()
    assert 0 < reading.available <= reading.total
    assert 1 << 20 < reading.own < reading.total
    held = bytearray(b"x" * (32 << 20))
    assert anonymous_bytes() - reading.own == pytest.approx(len(held), rel=0.2)


def test_only_windows_has_a_commit_limit() -> None:
    free = free_commit()
    assert (free is None) == (sys.platform != "win32")
    assert free is None or free > 0
