"""Chip architecture of a graphics card from its PCI ids, its compute capability or its name.

The ranges are those the vendors publish with their open drivers and id lists: for AMD the gfx name
of the chip, for NVIDIA ``sm_`` and the compute capability, for Intel the name of the generation.
"""

from __future__ import annotations

import re

from localglm.devices.record import Vendor

VENDORS: dict[int, Vendor] = {
    0x1002: "amd", 0x1022: "amd", 0x10DE: "nvidia", 0x8086: "intel", 0x106B: "apple",
    0x5143: "qualcomm",
}  # fmt: skip

DISPLAY_VENDORS = {
    0x1A03: "ASPEED", 0x102B: "Matrox", 0x1234: "Bochs", 0x15AD: "VMware", 0x1B36: "QXL",
    0x1AF4: "virtio", 0x1414: "Microsoft", 0x80EE: "VirtualBox", 0x1013: "Cirrus",
}  # fmt: skip
"""Makers of adapters that only put a picture somewhere."""

_AMD = (
    (0x1114, 0x1114, "gfx1152"), (0x13C0, 0x13C0, "gfx1036"), (0x13FE, 0x13FE, "gfx1013"),
    (0x143F, 0x143F, "gfx1013"), (0x1506, 0x1506, "gfx1037"), (0x150E, 0x150E, "gfx1150"),
    (0x1586, 0x1586, "gfx1151"), (0x15BF, 0x15BF, "gfx1103"), (0x15C8, 0x15C8, "gfx1103"),
    (0x15D8, 0x15D8, "gfx902"), (0x15DD, 0x15DD, "gfx902"), (0x15E7, 0x15E7, "gfx90c"),
    (0x1636, 0x1636, "gfx90c"), (0x1638, 0x1638, "gfx90c"), (0x163F, 0x163F, "gfx1033"),
    (0x164C, 0x164C, "gfx90c"), (0x164D, 0x164D, "gfx1035"), (0x164E, 0x164E, "gfx1036"),
    (0x1681, 0x1681, "gfx1035"), (0x1900, 0x1901, "gfx1103"), (0x1902, 0x1902, "gfx1153"),
    (0x66A0, 0x66AF, "gfx906"), (0x67C0, 0x67FF, "gfx803"), (0x6860, 0x687F, "gfx900"),
    (0x6920, 0x693F, "gfx802"), (0x6980, 0x699F, "gfx803"), (0x69A0, 0x69AF, "gfx904"),
    (0x6FDF, 0x6FDF, "gfx803"), (0x7300, 0x730F, "gfx803"), (0x7310, 0x731F, "gfx1010"),
    (0x7340, 0x734F, "gfx1012"), (0x7360, 0x7362, "gfx1011"), (0x7388, 0x738E, "gfx908"),
    (0x73A0, 0x73BF, "gfx1030"), (0x73C0, 0x73DF, "gfx1031"), (0x73E0, 0x73FF, "gfx1032"),
    (0x7408, 0x7410, "gfx90a"), (0x7420, 0x743F, "gfx1034"), (0x7440, 0x745F, "gfx1100"),
    (0x7460, 0x747F, "gfx1101"), (0x7480, 0x749F, "gfx1102"), (0x74A0, 0x74BF, "gfx942"),
    (0x7550, 0x755F, "gfx1201"), (0x7590, 0x759F, "gfx1200"), (0x75A0, 0x75BF, "gfx950"),
)  # fmt: skip

_NVIDIA = (
    (0x0FC0, 0x0FFF, "sm_30"), (0x1000, 0x103F, "sm_35"), (0x1180, 0x11FF, "sm_30"),
    (0x1280, 0x12BF, "sm_35"), (0x1340, 0x13BF, "sm_50"), (0x13C0, 0x143F, "sm_52"),
    (0x15F0, 0x15FF, "sm_60"), (0x1740, 0x177F, "sm_50"), (0x17C0, 0x17FF, "sm_52"),
    (0x1B00, 0x1D7F, "sm_61"), (0x1D80, 0x1DFF, "sm_70"), (0x1E00, 0x1FFF, "sm_75"),
    (0x2080, 0x20FF, "sm_80"), (0x2180, 0x21FF, "sm_75"), (0x2200, 0x22FF, "sm_86"),
    (0x2300, 0x237F, "sm_90"), (0x2400, 0x25FF, "sm_86"), (0x2680, 0x28FF, "sm_89"),
    (0x2900, 0x297F, "sm_100"), (0x2B80, 0x2DFF, "sm_120"), (0x2E00, 0x2E7F, "sm_121"),
    (0x2F00, 0x2F7F, "sm_120"), (0x3180, 0x31FF, "sm_103"),
)  # fmt: skip

_INTEL = (
    (0x0BD0, 0x0BDB, "xe-hpc"), (0x4905, 0x4909, "xe-dg1"), (0x4F80, 0x4F88, "xe-hpg"),
    (0x5690, 0x56C2, "xe-hpg"), (0x6420, 0x64B0, "xe2-lpg"), (0x7D40, 0x7DD5, "xe-lpg"),
    (0xB080, 0xB0BF, "xe3-lpg"), (0xE200, 0xE2FF, "xe2-hpg"),
)  # fmt: skip

_RANGES = {0x1002: _AMD, 0x10DE: _NVIDIA, 0x8086: _INTEL}

INTEGRATED = frozenset({
    "gfx902", "gfx90c", "gfx1013", "gfx1033", "gfx1035", "gfx1036", "gfx1037", "gfx1103",
    "gfx1150", "gfx1151", "gfx1152", "gfx1153", "sm_121", "xe-lpg", "xe2-lpg", "xe3-lpg",
    "intel-graphics", "apple", "adreno",
})  # fmt: skip
"""Architectures that only exist inside a processor and share its memory."""

ROOMY = frozenset({"gfx1151", "sm_121", "apple"})
"""Integrated ones built with a memory far wider than a desktop processor's."""

_GFX = re.compile(r"\bgfx[0-9]{3,4}[a-f]?\b|\bgfx[0-9]{2}[a-f]\b")
_NAMES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), architecture)
    for pattern, architecture in (
        (r"\bNAVI31\b|RX 7900|W7[89]00", "gfx1100"), (r"\bNAVI32\b|RX 7[78]00", "gfx1101"),
        (r"\bNAVI33\b|RX 7[46][05]0", "gfx1102"), (r"\bNAVI48\b|RX 9070|AI PRO R97", "gfx1201"),
        (r"\bNAVI44\b|RX 9060", "gfx1200"), (r"\bNAVI21\b|RX 6[89][05]0", "gfx1030"),
        (r"\bNAVI22\b|RX 67[05]0", "gfx1031"), (r"\bNAVI23\b|RX 66[05]0", "gfx1032"),
        (r"\bNAVI24\b|RX 6[45]00", "gfx1034"), (r"Radeon 80[456]0S|\bSTRIX_HALO\b", "gfx1151"),
        (r"^Apple M[0-9]", "apple"), (r"\bAdreno\b", "adreno"),
    )
)  # fmt: skip


def of_pci_id(vendor: int, device: int) -> str | None:
    """Return the architecture behind a PCI vendor and device id, or None where no range holds it.

    Intel's graphics outside the ranges of its cards is the processor's own.
    """
    for low, high, architecture in _RANGES.get(vendor, ()):
        if low <= device <= high:
            return architecture
    return "intel-graphics" if vendor == 0x8086 else None


def of_capability(major: int, minor: int) -> str:
    """Return the architecture of an NVIDIA compute capability."""
    return f"sm_{major}{minor}"


def of_gfx_version(version: int) -> str | None:
    """Return the gfx name of the kernel driver's number: 110000 is gfx1100, 90010 is gfx90a."""
    if version <= 0:
        return None
    major, minor, step = version // 10000, version // 100 % 100, version % 100
    return f"gfx{major}{minor:x}{step:x}"


def of_gfx_text(text: str) -> str | None:
    """Return the gfx name inside a text such as ``gfx90a:sramecc+:xnack-``."""
    found = _GFX.search(text)
    return found.group() if found else None


def of_name(name: str) -> str | None:
    """Return the architecture a marketing name tells, for APIs that give nothing better."""
    gfx = of_gfx_text(name)
    if gfx:
        return gfx
    return next((known for pattern, known in _NAMES if pattern.search(name)), None)


def vendor_of(text: str) -> Vendor | None:
    """Return the maker a name or a platform tells."""
    lower = text.lower()
    marks: tuple[tuple[str, Vendor], ...] = (
        ("nvidia", "nvidia"), ("geforce", "nvidia"), ("advanced micro", "amd"), ("amd", "amd"),
        ("radeon", "amd"), ("intel", "intel"), ("apple", "apple"), ("qualcomm", "qualcomm"),
        ("adreno", "qualcomm"),
    )  # fmt: skip
    return next((vendor for mark, vendor in marks if mark in lower), None)
