"""What probes read where the place they read from is made by hand."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from localglm.devices.probes import AbsentError, linux_cards, nvml, opencl, torch_runtime
from localglm.devices.probes.windows_cards import read

CLASS = r"SYSTEM\CurrentControlSet\Control\Class\{4d36e968-e325-11ce-bfc1-08002be10318}"
PLACE = "@System32\\drivers\\pci.sys,#65536;PCI bus %1, device %2, function %3;(3,0,0)"


class Registry:
    """A registry of dictionaries: path to values."""

    def __init__(self, values: Mapping[str, Mapping[str, object]]) -> None:
        self._values = values

    def keys(self, path: str) -> list[str]:
        below = (p[len(path) + 1 :] for p in self._values if p.startswith(path + "\\"))
        return list(dict.fromkeys(rest.split("\\")[0] for rest in below))

    def values(self, path: str) -> dict[str, object]:
        return dict(self._values.get(path, {}))


def registry(*, is_running: bool) -> Registry:
    pci = r"SYSTEM\CurrentControlSet\Enum\PCI\VEN_1002&DEV_744C&SUBSYS_0&REV_C8\6&1&0&00000019"
    instance = pci.removeprefix("SYSTEM\\CurrentControlSet\\Enum\\")
    running: dict[str, object] = {"Count": 1, "0": instance.upper()} if is_running else {"Count": 0}
    return Registry(
        {
            CLASS + r"\0000": {
                "DriverDesc": "AMD Radeon RX 7900 XTX",
                "DriverVersion": "32.0.21025.1024",
                "MatchingDeviceId": r"PCI\VEN_1002&DEV_744C&REV_C8",
                "HardwareInformation.qwMemorySize": (24 << 30).to_bytes(8, "little"),
                "HardwareInformation.MemorySize": 0xFFF00000,
            },
            CLASS + r"\Configuration": {"DriverDesc": "no adapter"},
            CLASS + r"\0001": {"DriverDesc": "Remote Display", "MatchingDeviceId": "RdpIdd"},
            pci: {
                "Driver": r"{4D36E968-E325-11CE-BFC1-08002BE10318}\0000",
                "LocationInformation": PLACE,
                "Service": "amdkmdap",
            },
            r"SYSTEM\CurrentControlSet\Services\amdkmdap\Enum": running,
        }
    )


def test_the_registry_tells_place_memory_and_driver() -> None:
    (card,) = read(registry(is_running=True)).cards
    assert (card.vendor, card.device, card.name) == (0x1002, 0x744C, "AMD Radeon RX 7900 XTX")
    assert (card.bus, card.slot, card.function) == (3, 0, 0)
    assert card.memory_bytes == 24 << 30  # the older value stops at 4 GiB
    assert card.driver == "32.0.21025.1024"
    assert card.is_present


def test_a_card_that_was_taken_out_is_told_from_one_that_is_there() -> None:
    (card,) = read(registry(is_running=False)).cards
    assert not card.is_present


def tree(top: Path) -> Path:
    for address, facts in {
        "0000:03:00.0": {"class": "0x030000", "vendor": "0x1002", "device": "0x744c",
                         "boot_vga": "1", "mem_info_vram_total": str(24 << 30),
                         "mem_info_vram_used": str(1 << 30), "mem_info_gtt_total": str(31 << 30)},
        "0000:05:00.0": {"class": "0x120000", "vendor": "0x1002", "device": "0x74a1"},
        "0000:00:1f.3": {"class": "0x040300", "vendor": "0x8086", "device": "0x7ad0"},
        "0000:00:02.0": {"class": "0x030000", "vendor": "nonsense", "device": ""},
    }.items():  # fmt: skip
        folder = top / "sys/bus/pci/devices" / address
        folder.mkdir(parents=True)
        for name, text in facts.items():
            (folder / name).write_text(text + "\n")
    driver = top / "sys/bus/pci/drivers/amdgpu"
    driver.mkdir(parents=True)
    (top / "sys/bus/pci/devices/0000:03:00.0/driver").symlink_to(driver)
    (top / "sys/module/amdgpu").mkdir(parents=True)
    (top / "sys/module/amdgpu/version").write_text("6.12.12\n")
    for node, properties in {
        "0": "cpu_cores_count 16\nsimd_count 0\n",
        "1": "simd_count 192\ngfx_target_version 110000\nlocation_id 768\ndomain 0\n"
             "vendor_id 4098\ndevice_id 29772\nunique_id 6501234567890123456\nodd line here\n",
    }.items():  # fmt: skip
        folder = top / "sys/class/kfd/kfd/topology/nodes" / node
        folder.mkdir(parents=True)
        (folder / "properties").write_text(properties)
    bank = top / "sys/class/kfd/kfd/topology/nodes/1/mem_banks/0"
    bank.mkdir(parents=True)
    (bank / "properties").write_text(f"heap_type 1\nsize_in_bytes {24 << 30}\n")
    (top / "dev/dri").mkdir(parents=True)
    (top / "dev/dri/renderD128").touch()
    return top


def test_linux_tells_cards_accelerators_and_nodes_and_leaves_the_rest(tmp_path: Path) -> None:
    found = linux_cards.probe(str(tree(tmp_path)))
    card, accelerator = found.pci
    assert (card.address, card.driver, card.driver_version) == ("0000:03:00.0", "amdgpu", "6.12.12")
    assert (card.vram_bytes, card.gtt_bytes, card.is_boot_display) == (24 << 30, 31 << 30, True)
    assert (accelerator.device, accelerator.driver) == (0x74A1, "")
    (node,) = found.kfd
    assert (node.gfx_target_version, node.location_id >> 8, node.unique_id) == (
        110000, 3, 6501234567890123456,
    )  # fmt: skip
    assert node.memory_bytes == 24 << 30
    assert (found.has_kfd, found.may_open_kfd, found.render_nodes) == (
        False,
        False,
        ("renderD128",),
    )


def test_a_system_without_any_of_it_is_empty_and_no_error(tmp_path: Path) -> None:
    found = linux_cards.probe(str(tmp_path))
    assert (found.pci, found.kfd, found.has_kfd) == ((), (), False)


def test_the_driver_node_counts_when_it_may_be_opened(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/kfd").touch()
    found = linux_cards.probe(str(tmp_path))
    assert (found.has_kfd, found.may_open_kfd) == (True, True)


@pytest.mark.parametrize(("module", "probe"), [("pyopencl", opencl.probe), ("pynvml", nvml.probe)])
def test_a_missing_package_is_said_by_name(
    monkeypatch: pytest.MonkeyPatch, module: str, probe: object
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    assert callable(probe)
    with pytest.raises(AbsentError, match=r"package (pyopencl|nvidia-ml-py) cannot be imported"):
        probe()


class NoSuchValueError(Exception):
    """What an OpenCL driver raises for a key it does not know."""


class FakeClDevice:
    """An AMD card as its driver tells it; every other key is refused."""

    name = "gfx1100"
    vendor = "Advanced Micro Devices, Inc."
    vendor_id = 0x1002
    type = 4
    driver_version = "3652.0 (HSA1.1,LC)"
    board_name_amd = "Radeon RX 7900 XTX"
    global_mem_size = 24 << 30
    global_free_memory_amd = (23 << 20, 22 << 20)
    topology_amd = SimpleNamespace(bus=-125, device=0, function=0)
    host_unified_memory = 0

    def __getattr__(self, key: str) -> object:
        raise NoSuchValueError(key)


def test_opencl_keys_a_driver_refuses_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    platform = SimpleNamespace(name="AMD Accelerated Parallel Processing",
                               get_devices=lambda: [FakeClDevice()])  # fmt: skip
    fake = SimpleNamespace(get_platforms=lambda: [platform], LogicError=KeyError, Error=KeyError)
    monkeypatch.setitem(sys.modules, "pyopencl", fake)
    (device,) = opencl.probe().devices
    assert device.board_name == "Radeon RX 7900 XTX"
    assert device.pci_bus == 0x83  # the bus is a signed byte there
    assert device.free_kib == 23 << 20
    assert device.capability is None
    assert device.unified_memory is False


def fake_torch(*, hip: str | None, cuda: str | None, problem: str = "") -> SimpleNamespace:
    def init() -> None:
        if problem:
            raise RuntimeError(problem + "\nmore lines follow")

    facts = SimpleNamespace(name="Radeon", gcnArchName="gfx1100", total_memory=24 << 30, major=11,
                            minor=0, pci_bus_id=3, pci_device_id=0, pci_domain_id=0)  # fmt: skip
    runtime = SimpleNamespace(
        init=init,
        device_count=lambda: 1,
        get_arch_list=lambda: ["gfx1100"],
        get_device_properties=lambda _index: facts,
        mem_get_info=lambda _index: (23 << 30, 24 << 30),
    )
    return SimpleNamespace(cuda=runtime, version=SimpleNamespace(cuda=cuda, hip=hip))


def with_torch(monkeypatch: pytest.MonkeyPatch, fake: SimpleNamespace, version: str) -> None:
    monkeypatch.setitem(sys.modules, "torch", fake)
    monkeypatch.setattr("localglm.devices.probes.torch_runtime.metadata.version", lambda _: version)


def test_torch_tells_build_chips_and_free_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    with_torch(monkeypatch, fake_torch(hip="6.4", cuda=None), "2.9.1+rocm6.4")
    found = torch_runtime.probe()
    assert (found.version, found.hip, found.architectures) == ("2.9.1+rocm6.4", "6.4", ("gfx1100",))
    (device,) = found.devices
    assert (device.gfx, device.pci_bus, device.free_bytes) == ("gfx1100", 3, 23 << 30)
    assert device.capability is None


def test_torch_without_a_working_driver_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = fake_torch(hip=None, cuda="13.0", problem="The NVIDIA driver is too old")
    with_torch(monkeypatch, broken, "2.15.0+cu130")
    found = torch_runtime.probe()
    assert (found.problem, found.devices) == ("The NVIDIA driver is too old", ())


def test_torch_for_the_processor_counts_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with_torch(monkeypatch, fake_torch(hip=None, cuda=None), "2.15.0+cpu")
    with pytest.raises(AbsentError, match=r"torch 2.15.0\+cpu is a build for the processor"):
        torch_runtime.probe()
