"""PCI ids, capabilities and names against cards everybody knows."""

from __future__ import annotations

from itertools import pairwise

import pytest

from localglm.devices import architecture as arch
from localglm.devices.table import BACKENDS, TABLE, row_of

KNOWN = {
    # AMD
    (0x1002, 0x744C): "gfx1100", (0x1002, 0x747E): "gfx1101", (0x1002, 0x7480): "gfx1102",
    (0x1002, 0x7550): "gfx1201", (0x1002, 0x7590): "gfx1200", (0x1002, 0x73BF): "gfx1030",
    (0x1002, 0x73DF): "gfx1031", (0x1002, 0x73FF): "gfx1032", (0x1002, 0x743F): "gfx1034",
    (0x1002, 0x731F): "gfx1010", (0x1002, 0x7340): "gfx1012", (0x1002, 0x66AF): "gfx906",
    (0x1002, 0x687F): "gfx900", (0x1002, 0x67DF): "gfx803", (0x1002, 0x164E): "gfx1036",
    (0x1002, 0x13C0): "gfx1036", (0x1002, 0x15BF): "gfx1103", (0x1002, 0x150E): "gfx1150",
    (0x1002, 0x1586): "gfx1151", (0x1002, 0x163F): "gfx1033", (0x1002, 0x1638): "gfx90c",
    (0x1002, 0x74A1): "gfx942", (0x1002, 0x740F): "gfx90a", (0x1002, 0x738C): "gfx908",
    # NVIDIA
    (0x10DE, 0x13C2): "sm_52", (0x10DE, 0x1B80): "sm_61", (0x10DE, 0x1C82): "sm_61",
    (0x10DE, 0x15F8): "sm_60", (0x10DE, 0x1DB6): "sm_70", (0x10DE, 0x1E04): "sm_75",
    (0x10DE, 0x2184): "sm_75", (0x10DE, 0x1F82): "sm_75", (0x10DE, 0x20B5): "sm_80",
    (0x10DE, 0x2204): "sm_86", (0x10DE, 0x2484): "sm_86", (0x10DE, 0x25A2): "sm_86",
    (0x10DE, 0x2335): "sm_90", (0x10DE, 0x2684): "sm_89", (0x10DE, 0x2882): "sm_89",
    (0x10DE, 0x2901): "sm_100", (0x10DE, 0x2B85): "sm_120", (0x10DE, 0x2D04): "sm_120",
    (0x10DE, 0x2F04): "sm_120", (0x10DE, 0x2E12): "sm_121",
    # Intel
    (0x8086, 0x56A0): "xe-hpg", (0x8086, 0xE20B): "xe2-hpg", (0x8086, 0x64A0): "xe2-lpg",
    (0x8086, 0x7D55): "xe-lpg", (0x8086, 0x46A6): "intel-graphics",
}  # fmt: skip


@pytest.mark.parametrize(("ids", "chip"), KNOWN.items())
def test_known_cards_have_their_chip(ids: tuple[int, int], chip: str) -> None:
    assert arch.of_pci_id(*ids) == chip


def test_unknown_ids_have_no_chip() -> None:
    assert arch.of_pci_id(0x1002, 0x0001) is None
    assert arch.of_pci_id(0x10DE, 0xFFFF) is None
    assert arch.of_pci_id(0x1A03, 0x2000) is None


@pytest.mark.parametrize("ranges", [arch._AMD, arch._NVIDIA, arch._INTEL])
def test_ranges_ascend_and_never_overlap(ranges: tuple[tuple[int, int, str], ...]) -> None:
    ends = [(low, high) for low, high, _ in sorted(ranges)]
    assert all(low <= high for low, high in ends)
    assert all(one[1] < two[0] for one, two in pairwise(ends))


@pytest.mark.parametrize(
    ("version", "chip"),
    [(110000, "gfx1100"), (90010, "gfx90a"), (90402, "gfx942"), (100306, "gfx1036"),
     (110501, "gfx1151"), (90012, "gfx90c"), (120001, "gfx1201"), (0, None)],
)  # fmt: skip
def test_the_kernels_number_becomes_the_chips_name(version: int, chip: str | None) -> None:
    assert arch.of_gfx_version(version) == chip


@pytest.mark.parametrize(
    ("name", "chip"),
    [
        ("gfx90a:sramecc+:xnack-", "gfx90a"),
        ("AMD Radeon RX 7900 XTX (RADV NAVI31)", "gfx1100"),
        ("AMD Radeon RX 9070 XT", "gfx1201"),
        ("AMD Radeon RX 6750 XT", "gfx1031"),
        ("Apple M3 Max", "apple"),
        ("NVIDIA GeForce RTX 4090", None),
        ("AMD Radeon Graphics", None),
    ],
)
def test_names_tell_a_chip_only_where_they_are_sure(name: str, chip: str | None) -> None:
    assert arch.of_name(name) == chip


def test_the_table_names_each_chip_once_and_only_real_back_ends() -> None:
    chips = [chip for row in TABLE for chip in row.architectures]
    assert len(chips) == len(set(chips))
    assert {row.backend for row in TABLE} <= set(BACKENDS)
    assert all(row.remedy and row.driver for row in TABLE)
    assert row_of("gfx803") is None
    assert row_of(None) is None
