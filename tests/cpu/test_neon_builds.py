"""The ARM kernels compile without a warning for every ARM system, whatever machine this is."""

import pytest

from build_tools import native
from build_tools.native import BuildError
from tests.cpu.neon.runner import Runner

ARM = [name for name in native.TARGETS if name.startswith("aarch64")]
SOURCES = (
    "kernels/dot_k",
    "kernels/dot_iq",
    "kernels/dot_run32",
    "kernels/dot_float",
    "kernels/dot_panel_neon",
    "lg_isa",
)


def compile_without_optimising(name, source, folder):
    target = native.TARGETS[name]
    processor = dict(target.processors)["neon"]
    flags = [flag for flag in native.FLAGS if flag != "-O3"]
    own = ["-O0", f"-mcpu={processor}", "-DLG_ISA=neon", "-I", str(native.SOURCE)]
    native.zig(["-c", *flags, *own, str(source), "-o", str(folder / "made.o")], target)


@pytest.mark.parametrize("name", ARM)
def test_the_kernels_compile_for_arm(name, tmp_path) -> None:
    native.build()  # makes the tables that the kernels include
    for source in SOURCES:
        compile_without_optimising(name, native.SOURCE / f"{source}.c", tmp_path)


@pytest.mark.parametrize("name", ARM)
def test_a_warning_of_an_arm_kernel_stops_the_build(name, tmp_path) -> None:
    source = tmp_path / "with_warning.c"
    text = (
        '#include "kernels/dot_neon.h"\nint8x16_t f(void) { int8x16_t v; int unused; return v; }\n'
    )
    source.write_text(text)
    with pytest.raises(BuildError, match="unused"):
        compile_without_optimising(name, source, tmp_path)


def test_without_an_emulator_the_long_tests_name_its_package(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(AssertionError, match="apt-get install qemu-user-static"):
        Runner(tmp_path / "runner", "max").best_isa()
