"""Naming a card, and what is refused with which reason."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from localglm.devices import replay
from localglm.devices.answers import Adapters, DriverLibrary, RuntimeDevice
from localglm.devices.match import Choice, choose
from localglm.devices.merge import machine_of
from localglm.devices.naming import adapter_index, card_named, runtime_index
from localglm.devices.record import Card, Machine
from localglm.devices.table import BACKENDS
from localglm.devices.visibility import hiding
from localglm.errors import DeviceError, LocalGlmError

FOLDER = Path(__file__).parent / "machines"


def machine(name: str) -> Machine:
    data = msgspec.json.decode((FOLDER / f"{name}.json").read_bytes())
    return machine_of(replay.recording_of(data["recording"]))


def key(choice: Choice) -> str | None:
    return choice.card.key if choice.card else None


def card(name: str, address: str) -> Card:
    return next(c for c in machine(name).cards if c.key == address)


@pytest.mark.parametrize(
    "text",
    ["0000:0c:00.0", "0C:00.0", "0c:00", "00000000:0c:00.0", "7900", "7900 xtx",
     "Radeon RX 7900 XTX", "GPU-5a3c9e0011223344"],
)  # fmt: skip
def test_a_card_answers_to_address_uuid_and_name(text: str) -> None:
    found = card_named(text, machine("igpu-first-7900xtx-second").cards)
    assert found.key == "0000:0c:00.0"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("0", "--device 0 is an index"),
        ("1", "--device 1 is an index"),
        ("5090", "there is no card '5090'"),
        ("RTX 5090", "there is no card 'RTX 5090'"),
        ("0000:99:00.0", "there is no card '0000:99:00.0'"),
        ("radeon", "'radeon' means 2 cards"),
    ],
)
def test_what_names_no_card_or_several_is_refused(text: str, what: str) -> None:
    with pytest.raises(DeviceError) as caught:
        card_named(text, machine("igpu-first-7900xtx-second").cards)
    assert caught.value.what == what
    lines = " ".join(caught.value.lines())
    assert "0000:0c:00.0" in lines or "localglm backends" in lines


def test_a_named_card_goes_before_a_better_one() -> None:
    found = machine("nvidia-and-amd-amd-larger")
    assert key(choose(found, BACKENDS)) == "0000:0c:00.0"
    named = choose(found, BACKENDS, device="3060")
    assert (key(named), named.backend) == ("0000:01:00.0", "cuda")
    assert "asked for by name" in named.reason


def test_software_and_the_processors_graphics_compute_when_they_are_named() -> None:
    assert choose(machine("llvmpipe-only"), BACKENDS, device="llvmpipe").backend == "wgpu"
    assert choose(machine("llvmpipe-only"), BACKENDS, backend="wgpu").backend == "wgpu"
    igpu = choose(machine("igpu-only"), BACKENDS, device="0000:0e:00.0")
    assert (igpu.backend, key(igpu)) == ("wgpu", "0000:0e:00.0")


def test_a_named_back_end_takes_its_best_card() -> None:
    found = machine("nvidia-and-amd-amd-larger")
    assert key(choose(found, BACKENDS, backend="cuda")) == "0000:01:00.0"
    assert key(choose(found, BACKENDS, backend="wgpu")) == "0000:0c:00.0"
    assert choose(found, BACKENDS, backend="cpu").card is None
    assert choose(found, BACKENDS, backend="reference").backend == "reference"


@pytest.mark.parametrize(
    ("name", "backend", "device", "why"),
    [
        ("nvidia-and-amd-amd-larger", "hip", "3060", "no card of this computer is one for it"),
        ("rdna2-torch-lacks-it", "hip", "auto", "has no kernels for gfx1031"),
        ("rocm-without-kfd-access", "hip", "auto", "may not open /dev/kfd"),
        ("llvmpipe-only", "cuda", "auto", "no card of this computer is one for it"),
        ("wsl2-amd", "auto", "7900", "only through DirectX 12"),
        ("nvidia-and-amd-amd-larger", "cpu", "3060", "it computes on the processor"),
        ("nvidia-and-amd-amd-larger", "vulkan", "auto", "the back ends are cuda, hip, wgpu"),
    ],
)
def test_what_cannot_be_obeyed_is_refused_with_its_reason(
    name: str, backend: str, device: str, why: str
) -> None:
    with pytest.raises(DeviceError) as caught:
        choose(machine(name), BACKENDS, backend, device)
    assert why in caught.value.why
    assert caught.value.try_


@pytest.mark.parametrize(
    ("backend", "device"), [("hip", "auto"), ("auto", "7900"), ("hip", "7900")]
)
def test_a_back_end_this_version_lacks_is_refused_as_such(backend: str, device: str) -> None:
    found = machine("nvidia-and-amd-amd-larger")
    with pytest.raises(DeviceError, match="cannot be used") as caught:
        choose(found, ("cpu", "reference"), backend, device)
    assert "this version has no hip" in caught.value.why
    assert "cpu or reference" in caught.value.why


def test_the_runtimes_index_is_found_by_uuid_where_there_is_no_address() -> None:
    wanted = card("nvidia-and-amd-amd-larger", "0000:01:00.0")
    other = RuntimeDevice(index=0, name="NVIDIA GeForce RTX 3060", uuid="GPU-" + "9" * 32)
    same = RuntimeDevice(index=1, name="NVIDIA GeForce RTX 3060", uuid=f"GPU-{wanted.uuid}")
    assert runtime_index(wanted, DriverLibrary("libcuda.so.1", 12080, (other, same))) == 1
    with pytest.raises(DeviceError, match="is not listed by its runtime any more"):
        runtime_index(wanted, DriverLibrary("libcuda.so.1", 12080, (other,)))


def test_the_adapters_index_is_found_by_its_ids_whatever_stands_before_it() -> None:
    name = "igpu-first-7900xtx-second"
    found = machine(name)
    listed = msgspec.convert(found.probes["wgpu"].data, Adapters)
    wanted = card(name, "0000:0c:00.0")
    assert adapter_index(wanted, listed) == 1
    turned = replace(listed, adapters=listed.adapters[::-1])
    assert adapter_index(wanted, turned) == 1
    assert turned.adapters[0].adapter_type == "CPU"
    with pytest.raises(DeviceError):
        adapter_index(wanted, listed, "Metal")
    with pytest.raises(DeviceError):
        adapter_index(wanted, listed, among=1)


def test_rocm_is_left_one_card_of_two_when_one_is_wanted() -> None:
    found = machine("two-7900xtx-without-rocm")
    assert hiding(found) == {}
    assert hiding(found, found.cards[1]) == {"ROCR_VISIBLE_DEVICES": "1"}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"platform": 3}', "not json"])
def test_a_file_that_is_no_recording_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "file.json"
    file.write_text(text)
    with pytest.raises(LocalGlmError, match="is no recorded computer"):
        replay.machine(file)


def test_a_recording_of_a_later_form_is_refused() -> None:
    data = {"platform": {"system": "Linux"}, "probes": {}, "schema_version": 99}
    with pytest.raises(LocalGlmError) as caught:
        replay.recording_of(data)
    assert "version 99" in caught.value.why
