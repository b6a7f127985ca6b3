"""What is read, held against the ``gguf`` package's own reader."""

from __future__ import annotations

import random
import struct
import subprocess
import sys
import time
from pathlib import Path

import gguf
import numpy as np
import pytest

from localglm.errors import ModelFileError
from localglm.gguf import StringArray, open_model
from localglm.gguf.ggml_types import tensor_type
from localglm.quant.types import StorageType
from tests import gguf_files as files
from tests import oracle_archive as oracle
from tests.gguf_files import Content, Tiny, Value, write_model

SPECS = {
    "other dialect": Tiny(arch="glm5-next", seed=2),
    "all matrices 2-bit": Tiny(
        width=256, storage="IQ2_XXS", storage_of={"down_exps.weight": "F16"}
    ),
    "trailing ones": Tiny(trailing_ones=True),
    "no tokenizer": Tiny(tokenizer=False, draft=False),
}


def paths_of_fixtures() -> list[Path]:
    return [oracle.model_path(name) for name in oracle.NAMES]


def assert_same_as_oracle(path: Path) -> None:
    with open_model(path) as file:
        readers = [gguf.GGUFReader(part) for part in file.paths]
        tensors = {t.name: t for reader in readers for t in reader.tensors}
        assert list(file.tensors) == list(tensors)
        for name, want in tensors.items():
            info = file.tensors[name]
            assert info.type is not None
            assert info.type.name == want.tensor_type.name
            assert info.offset == want.data_offset
            assert info.nbytes == want.n_bytes
            assert info.values == want.n_elements
            np.testing.assert_array_equal(file.data(name), want.data.view(np.uint8).reshape(-1))
        for key, field in readers[0].fields.items():
            if not key.startswith("GGUF."):
                got = file.metadata[key]
                is_array = isinstance(got, np.ndarray | StringArray)
                assert (list(got) if is_array else got) == field.contents(), key


@pytest.mark.parametrize("path", paths_of_fixtures(), ids=oracle.NAMES)
def test_a_fixture_reads_as_the_gguf_package_reads_it(path: Path) -> None:
    assert_same_as_oracle(path)


@pytest.mark.parametrize("name", SPECS)
def test_a_synthetic_file_reads_as_the_gguf_package_reads_it(name: str, tmp_path: Path) -> None:
    assert_same_as_oracle(write_model(tmp_path, SPECS[name]))


def test_a_swapped_byte_is_seen_by_the_comparison(tmp_path: Path) -> None:
    path = write_model(tmp_path)
    with open_model(path) as file:
        data = file.data("output_norm.weight")
        raw = bytearray(path.read_bytes())
        raw[file.tensors["output_norm.weight"].offset] ^= 1
        path_of_twin = tmp_path / "twin.gguf"
        path_of_twin.write_bytes(raw)
        with open_model(path_of_twin) as twin:
            assert (twin.data("output_norm.weight") != data).sum() == 1


def test_every_known_type_has_the_block_size_of_the_gguf_package() -> None:
    for kind, (values, nbytes) in gguf.GGML_QUANT_SIZES.items():
        if kind.name == "Q8_1":
            continue  # gguf counts its two scales as float32, files have float16
        facts = tensor_type(int(kind))
        assert facts is not None
        assert (facts.name, facts.values, facts.nbytes) == (kind.name, values, nbytes)
    assert tensor_type(4) is None
    assert len(StorageType) == 22


def test_version_2_reads_like_version_3(tmp_path: Path) -> None:
    content = files.tiny_model(Tiny())
    for version in (2, 3):
        (tmp_path / f"v{version}.gguf").write_bytes(files.pack(content, version=version))
    with open_model(tmp_path / "v2.gguf") as two, open_model(tmp_path / "v3.gguf") as three:
        assert two.tensors == three.tensors


def test_another_alignment_moves_the_data(tmp_path: Path) -> None:
    content = files.tiny_model(Tiny())
    content.metadata["general.alignment"] = Value(files.U32, 128)
    path = tmp_path / "wide.gguf"
    path.write_bytes(files.pack(content, alignment=128))
    assert_same_as_oracle(path)


def test_shapes_lose_trailing_ones_and_count_outermost_first(tmp_path: Path) -> None:
    plain = write_model(tmp_path, Tiny(), name="plain")
    padded = write_model(tmp_path, Tiny(trailing_ones=True), name="padded")
    with open_model(plain) as one, open_model(padded) as other:
        assert one.tensors["token_embd.weight"].shape == (320, 64)
        assert one.tensors["blk.0.ssm_conv1d_q.weight"].shape == (64, 1, 4)
        assert {n: t.shape for n, t in one.tensors.items()} == {
            n: t.shape for n, t in other.tensors.items()
        }


def test_string_arrays_give_one_string_at_a_time(tmp_path: Path) -> None:
    with open_model(write_model(tmp_path)) as file:
        tokens = file.metadata["tokenizer.ggml.tokens"]
        assert isinstance(tokens, StringArray)
        everything = list(tokens)
        assert len(tokens) == len(everything) == 320
        for index in (0, 5, 319, -1, -320):
            assert tokens[index] == everything[index]
        assert tokens[300:303] == everything[300:303]
        with pytest.raises(IndexError):
            tokens[320]
        with pytest.raises(IndexError):
            tokens[-321]


def test_a_token_that_is_no_text_is_named_when_it_is_read(tmp_path: Path) -> None:
    def spoil(content: Content) -> None:
        content.metadata["tokenizer.ggml.tokens"].value[7] = b"\xff\xfe"

    with open_model(write_model(tmp_path, edit=spoil)) as file:
        tokens = file.metadata["tokenizer.ggml.tokens"]
        assert tokens[6]
        with pytest.raises(ModelFileError, match=r"tokens\[7\] is not UTF-8"):
            list(tokens)


def test_tensor_data_is_a_read_only_view_that_outlives_the_file(tmp_path: Path) -> None:
    with open_model(write_model(tmp_path)) as file:
        one, two = file.data("token_embd.weight"), file.data("token_embd.weight")
        assert np.shares_memory(one, two)
        assert not one.flags.writeable
        before = one[:16].copy()
    np.testing.assert_array_equal(one[:16], before)
    with pytest.raises(ModelFileError, match="closed"):
        file.data("token_embd.weight")


def test_last_padding_may_be_missing(tmp_path: Path) -> None:
    content = files.tiny_model(Tiny(draft=False))
    content.tensors.append(files.Tensor("extra.bias", (3,), 0, bytes(12)))
    raw = files.pack(content, tail_padding=False)
    path = tmp_path / "short.gguf"
    path.write_bytes(raw)
    with open_model(path) as file:
        assert file.file_bytes == len(raw)
        assert file.data("extra.bias").size == 12
    path.write_bytes(raw[:-1])
    with pytest.raises(ModelFileError, match="cut short"):
        open_model(path)


def test_a_full_vocabulary_opens_in_under_300_ms_of_processor_time(tmp_path: Path) -> None:
    rng = random.Random(3)
    words = [f"w{rng.randrange(10**6)}" for _ in range(154_880)]
    content = files.tiny_model(Tiny(tokenizer=False))
    content.metadata["tokenizer.ggml.tokens"] = Value(files.STRING, words)
    content.metadata["tokenizer.ggml.merges"] = Value(files.STRING, (words * 3)[:318_000])
    content.tensors += [files.Tensor(f"t{i}", (1,), 0, bytes(4)) for i in range(1_350)]
    path = tmp_path / "large.gguf"
    path.write_bytes(files.pack(content))
    times = []
    for _ in range(3):
        start = time.process_time()
        with open_model(path) as file:
            times.append(time.process_time() - start)
            assert len(file.tensors) > 1_500
    assert min(times) < 0.3
    assert struct.calcsize("P") == 8


def test_the_reader_never_imports_the_gguf_package() -> None:
    code = "import sys, localglm.gguf, localglm.model.load; print('gguf' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"
    control = code.replace("localglm.gguf", "gguf")
    assert subprocess.check_output([sys.executable, "-c", control], text=True).strip() == "True"
