"""``localglm backends`` and the flags that name a back end or a card."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from localglm.settings.load import environment

MACHINES = Path(__file__).parent / "machines"
MODEL = "tests/oracle/tiny-q8_0.gguf"


def program(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "localglm", *arguments],
        capture_output=True, text=True, check=False, timeout=60,
        env={**environment(), "LOCALGLM_CONFIG": "/no/settings.toml", **variables},
    )  # fmt: skip


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    data = json.loads((MACHINES / "igpu-first-7900xtx-second.json").read_text(encoding="utf-8"))
    file = tmp_path / "machine.json"
    file.write_text(json.dumps(data["recording"]))
    return file


def test_the_page_says_what_is_used_what_would_suit_and_why(recording: Path) -> None:
    done = program("backends", "--replay", str(recording))
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        """\
in use      cpu, on the processor
because     this version has no hip back end yet, which Radeon RX 7900 XTX would use; the processor computes
would suit  hip, on Radeon RX 7900 XTX: gfx1100 is supported by torch 2.9.1+rocm6.4 for ROCm 6.4.43483; before AMD Radeon Graphics: a card before the processor's own graphics

card        AMD Radeon Graphics
  address   0000:03:00.0
  chip      gfx1036, integrated, 512.0 MiB of its own and 31.0 GiB of the system's
  driver    amdgpu, seen by pci, kfd, torch-hip, vulkan
  o wgpu    Vulkan shows it, which WebGPU uses; it shares the processor's memory and bandwidth, so it is used only when it is named; this version has no such back end yet
  - hip     torch 2.9.1+rocm6.4 for ROCm 6.4.43483 has no kernels for gfx1036
    try     install a build of torch for gfx1036

card        Radeon RX 7900 XTX
  address   0000:0c:00.0 5a3c9e0011223344
  chip      gfx1100, discrete, 24.0 GiB of its own, 23.0 GiB free
  driver    amdgpu, seen by pci, kfd, torch-hip, vulkan
  + hip     gfx1100 is supported by torch 2.9.1+rocm6.4 for ROCm 6.4.43483; this version has no such back end yet
  + wgpu    Vulkan shows it, which WebGPU uses; this version has no such back end yet

card        llvmpipe (LLVM 17.0.6, 256 bits)
  chip      software, on the processor
  driver    Mesa 24.0.9, seen by vulkan
  o wgpu    it computes in software on the processor; used only when it is named; this version has no such back end yet
"""  # noqa: E501 - as it is printed
    )


def test_json_has_a_version_and_every_record(recording: Path) -> None:
    told = json.loads(program("backends", "--json", "--replay", str(recording)).stdout)
    assert told["schema_version"] == 1
    assert told["choice"]["backend"] == "cpu"
    assert (told["suits_best"]["backend"], told["suits_best"]["card"]) == ("hip", "0000:0c:00.0")
    assert told["built"] == ["cpu", "reference"]
    assert len(told["cards"]) == 3
    assert all(candidate["reason"] for candidate in told["candidates"])
    assert {probe["name"] for probe in told["probes"]} == {"linux", "torch", "wgpu"}


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("probe-hangs", r"^trouble +wgpu hung: no answer within 4 s"),
        ("probe-crashes", r"^trouble +torch crashed: it was ended by SIGSEGV"),
        ("probe-prints-garbage", r"^trouble +nvml gave no usable answer: "),
        ("cuda-hidden", r"^note +CUDA_VISIBLE_DEVICES=: only the cards it names"),
    ],
)
def test_trouble_and_variables_have_lines_of_their_own(
    tmp_path: Path, name: str, line: str
) -> None:
    file = tmp_path / "machine.json"
    data = json.loads((MACHINES / f"{name}.json").read_text(encoding="utf-8"))
    file.write_text(json.dumps(data["recording"]))
    done = program("backends", "--replay", str(file))
    assert done.returncode == 0
    assert re.search(line, done.stdout, re.MULTILINE), done.stdout


def test_what_drivers_say_never_steers_the_terminal(recording: Path) -> None:
    text = recording.read_text().replace("Radeon RX 7900 XTX", "\\u001b[31mRadeon")
    recording.write_text(text)
    assert "\x1b" not in program("backends", "--replay", str(recording)).stdout


def test_a_recording_is_kept_and_used_again(tmp_path: Path) -> None:
    file = tmp_path / "here.json"
    first = json.loads(
        program("backends", "--json", "--timeout", "30", "--record", str(file)).stdout
    )
    again = json.loads(program("backends", "--json", "--replay", str(file)).stdout)
    assert again == first


@pytest.mark.parametrize(
    ("flags", "what", "why"),
    [
        (["--backend", "wgpu"], "--backend wgpu cannot be used", "has no wgpu back end yet"),
        (["--backend", "vulkan"], "--backend cannot be 'vulkan'", "auto, cuda, hip, wgpu, cpu or"),
        (["--device", "0"], "--device 0 is an index", "in its own order"),
        (["--device", "no such card"], "there is no card 'no such card'", "this computer has"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused_before_the_model_is_opened(
    flags: list[str], what: str, why: str
) -> None:
    done = program("ask", MODEL, "hello", *flags)
    assert done.returncode in {2, 5}
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert lines[0] == f"error: {what}"
    assert why in lines[1]
    assert "loading" not in done.stderr


def test_the_device_is_a_setting_with_an_origin() -> None:
    done = program("config", "show", "--json", LOCALGLM_ENGINE_DEVICE="0000:03:00.0")
    device = json.loads(done.stdout)["settings"]["engine.device"]
    assert device["value"] == "0000:03:00.0"
    assert device["origin"] == "variable LOCALGLM_ENGINE_DEVICE"
    refused = program("config", "show", LOCALGLM_ENGINE_DEVICE=" ")
    assert refused.returncode == 4
    assert "engine.device cannot be ' '" in refused.stderr


def test_auto_computes_on_the_processor_without_asking_any_driver() -> None:
    code = (
        "import sys\n"
        "from localglm.cli.request_options import backend_in_force\n"
        "from localglm.settings.schema import Settings\n"
        "print(backend_in_force(Settings()), 'localglm.devices.survey' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == ["cpu", "False"]
