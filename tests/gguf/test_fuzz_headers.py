"""Seeded mutants of headers: each opens or is refused by name, in little time and memory.

A batch runs in a process of its own, which also measures its memory.
"""

from __future__ import annotations

import json
import random
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from localglm.errors import ModelFileError
from localglm.gguf import open_model
from localglm.gguf.header import read_header
from localglm.model.describe import describe
from tests import gguf_files as files
from tests.gguf_files import Content, Tiny, Value

ROOT = Path(__file__).parents[2]
BATCH = 60
SECONDS = 2.0
MEMORY_BYTES = 200 << 20
SPEC = Tiny(layers="KM", width=32, experts=2)
EXTREMES = (0, 1, 7, 255, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 40, 1 << 60, 1 << 63,
    (1 << 64) - 1)  # fmt: skip
NAN = float("nan")
ODD_NUMBERS = (
    (files.U32, 0), (files.U32, 3), (files.U32, (1 << 32) - 1), (files.I32, -1),
    (files.I64, -(1 << 63)), (files.U64, (1 << 64) - 1), (files.F32, NAN), (files.F32, 1e30),
    (files.F64, float("-inf")), (files.BOOL, True),
)  # fmt: skip
ODD_OTHERS = (
    (files.STRING, ""), (files.STRING, "x" * 5000), (files.STRING, ["a", "b"]), (files.U32, []),
    (files.I32, [1, 2, 3]), (files.F32, [NAN] * 3), (files.BOOL, [True, False]),
)  # fmt: skip


def mutate_bytes(rng: random.Random, raw: bytes, header: int) -> bytes:
    """Change the bytes of a file: values, lengths, ends, slices."""
    out = bytearray(raw)
    kind = rng.randrange(6)
    at = rng.randrange(header)
    if kind == 0:
        for _ in range(rng.choice((1, 2, 8, 64))):
            out[rng.randrange(header)] = rng.randrange(256)
    elif kind == 1:
        out[at : at + 8] = struct.pack("<Q", rng.choice(EXTREMES))
    elif kind == 2:
        out[at : at + 4] = struct.pack("<I", rng.choice(EXTREMES) & 0xFFFFFFFF)
    elif kind == 3:
        del out[rng.choice((at, rng.randrange(len(raw)))) :]
    elif kind == 4:
        del out[at : at + rng.randrange(1, 40)]
    else:
        out[at:at] = out[at : at + rng.randrange(1, 400)]
    return bytes(out)


def mutate_fields(rng: random.Random, raw: bytes, header: int) -> bytes:
    """Change what a reader counts with: a count of the file, or a length, type or offset field."""
    fields = [8, 16]
    names = [i for i in range(24, header - 8) if 4 < int.from_bytes(raw[i : i + 8], "little") < 60]
    fields += names
    at = rng.choice(fields)
    step = rng.choice((0, 8))
    value = rng.choice(
        (*EXTREMES, int.from_bytes(raw[at : at + 8], "little") + rng.choice((-1, 1)))
    )
    return raw[: at + step] + struct.pack("<Q", value & ((1 << 64) - 1)) + raw[at + step + 8 :]


def mutate_content(rng: random.Random, content: Content) -> bytes:
    """Change a file that stays well-formed: odd values, types, shapes, offsets, names."""
    for _ in range(rng.choice((1, 1, 3))):
        key = rng.choice(list(content.metadata))
        tensor = rng.choice(content.tensors)
        kind = rng.randrange(7)
        if kind <= 1:
            content.metadata[key] = Value(*rng.choice((*ODD_NUMBERS, *ODD_OTHERS)))
        elif kind == 2:
            del content.metadata[key]
        elif kind == 3:
            tensor.type_id = rng.choice((0, 1, 8, 10, 19, 26, 39, 99, 1 << 31))
        elif kind == 4:
            tensor.ne = tuple(
                rng.choice((1, 2, 32, 64, 1 << 20)) for _ in range(rng.randrange(1, 5))
            )
        elif kind == 5:
            tensor.name = rng.choice(("", "blk.99999999999.x", "blk.-1.a", "v.x", "é" * 40, key))
        else:
            content.tensors.remove(tensor)
    return files.pack(content)


def mutant(seed: int) -> bytes:
    """Make one mutant; the seed decides everything."""
    rng = random.Random(seed)
    content = files.tiny_model(SPEC)
    if seed % 3 == 0:
        return mutate_content(rng, content)
    raw = files.pack(content)
    header = read_header(memoryview(raw), Path("base.gguf"), 0).data_offset
    return (mutate_bytes if seed % 3 == 1 else mutate_fields)(rng, raw, header)


def survey_file(path: Path) -> None:
    """Use a file as ``inspect`` does, decoding its strings too."""
    with open_model(path) as file:
        describe(file).as_json()
        for value in file.metadata.values():
            if hasattr(value, "__iter__"):
                list(value)


def outcome(use: Callable[[Path], None], path: Path) -> str:
    """Return opened, refused, or what went wrong."""
    start = time.process_time()
    try:
        use(path)
    except ModelFileError as error:
        assert error.what
        result = "refused"
    except Exception as error:  # noqa: BLE001 - the very thing this test looks for
        return f"{type(error).__name__}: {error}"
    else:
        result = "opened"
    took = time.process_time() - start
    return result if took < SECONDS else f"took {took:.1f} s"


def run_batch(first: int, count: int) -> None:
    """Print the outcomes of a batch and how much the memory grew; runs in a child."""
    mutants = [mutant(seed) for seed in range(first, first + count)]
    before, outcomes = resident(), []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mutant.gguf"
        for raw in mutants:
            path.unlink(missing_ok=True)
            path.write_bytes(raw)
            outcomes.append(outcome(survey_file, path))
            assert [p.name for p in Path(folder).iterdir()] == [path.name]
            assert path.read_bytes() == raw
    print(json.dumps({"outcomes": outcomes, "grown": resident("VmHWM") - before}))


def resident(line: str = "VmRSS") -> int:
    """Return the resident memory of this process in bytes, or its peak (VmHWM)."""
    status = Path("/proc/self/status")
    if not status.exists():
        return psutil.Process().memory_info().rss
    found = next(x for x in status.read_text().splitlines() if x.startswith(line))
    return int(found.split()[1]) << 10


def batch(first: int) -> list[str]:
    code = f"from tests.gguf import test_fuzz_headers as f; f.run_batch({first}, {BATCH})"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["grown"] < MEMORY_BYTES
    return result["outcomes"]


def assert_sound(first: int) -> None:
    outcomes = batch(first)
    wrong = {first + i: o for i, o in enumerate(outcomes) if o not in {"opened", "refused"}}
    assert wrong == {}
    assert len(outcomes) == BATCH
    assert outcomes.count("refused") > BATCH // 4
    assert outcomes.count("opened") > 0


def test_60_mutants_open_or_are_refused() -> None:
    assert_sound(0)


@pytest.mark.long
@pytest.mark.parametrize("first", range(1000, 1000 + 600, BATCH))
def test_600_mutants_open_or_are_refused(first: int) -> None:
    assert_sound(first)


def test_a_fault_of_another_kind_is_seen(tmp_path: Path) -> None:
    def careless(_path: Path) -> None:
        raise KeyError("general.architecture")

    path = tmp_path / "base.gguf"
    path.write_bytes(files.pack(files.tiny_model(SPEC)))
    assert outcome(survey_file, path) == "opened"
    assert outcome(careless, path).startswith("KeyError")
    path.write_bytes(b"GGUF")
    assert outcome(survey_file, path) == "refused"


def test_memory_that_is_used_is_seen() -> None:
    code = (
        "from tests.gguf.test_fuzz_headers import resident; before = resident();"
        " bytearray(300 << 20); print(resident('VmHWM') - before)"
    )
    grown = int(subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True))
    assert grown > MEMORY_BYTES


def test_a_mutant_depends_on_its_seed_alone() -> None:
    assert mutant(4) == mutant(4)
    assert len({mutant(seed) for seed in range(12)}) == 12
