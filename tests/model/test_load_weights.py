"""From a file to a device: which bytes and values arrive, in which shapes, and when nothing may."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import gguf
import numpy as np
import pytest

from localglm.backends.base import StoredExperts, StoredMatrix
from localglm.errors import ModelFileError
from localglm.gguf import open_model
from localglm.model.inventory import survey
from localglm.model.load import load_model, load_surveyed
from localglm.model.weights import KdaWeights, MlaWeights, ModelWeights, MoeWeights
from tests import oracle_archive as oracle
from tests.gguf_files import Content, Edit, Tensor, Tiny, tiny_model, write_model


@dataclass
class Recorder:
    """A device that keeps what it is given."""

    matrices: list[StoredMatrix] = field(default_factory=list)
    uploads: list[np.ndarray] = field(default_factory=list)
    homes: list[object] = field(default_factory=list)

    def matrix(self, stored: StoredMatrix) -> StoredMatrix:
        self.matrices.append(stored)
        return stored

    def experts(self, stored: StoredExperts, home: object = None) -> StoredExperts:
        self.matrices += [stored.gate, stored.up, stored.down]
        self.homes.append(home)
        return stored

    def upload(self, array: np.ndarray) -> np.ndarray:
        self.uploads.append(array)
        return array


def load(path: Path) -> ModelWeights:
    with open_model(path) as file:
        return load_model(file, Recorder())[1]


def oracle_values(path: Path) -> dict[str, np.ndarray]:
    with open_model(path) as file:
        return {
            t.name: gguf.quants.dequantize(t.data, t.tensor_type)
            for part in file.paths
            for t in gguf.GGUFReader(part).tensors
        }


def floats(stored: StoredMatrix) -> np.ndarray:
    rows = stored.data.reshape(-1, stored.type.row_bytes(stored.shape[-1]))
    kind = gguf.GGMLQuantizationType[stored.type.name]
    return gguf.quants.dequantize(rows, kind).reshape(stored.shape)


@pytest.mark.parametrize("name", oracle.NAMES)
def test_every_weight_of_a_fixture_arrives_with_its_values(name: str) -> None:
    path = oracle.model_path(name)
    want = oracle_values(path)
    device = Recorder()
    with open_model(path) as file:
        load_model(file, device)
        assert len(device.matrices) + len(device.uploads) == len(file.tensors)
    for stored in device.matrices:
        np.testing.assert_array_equal(floats(stored).ravel(), want[stored.name].ravel())
    left = [want[key] for key in want if key not in {m.name for m in device.matrices}]
    assert sorted(v.size for v in left) == sorted(v.size for v in device.uploads)


def test_shapes_are_those_the_graph_reads(tmp_path: Path) -> None:
    spec = Tiny()
    weights = load(write_model(tmp_path, spec))
    linear, latent, moe = (
        weights.layers[0].attention,
        weights.layers[2].attention,
        weights.layers[1].ffn,
    )
    assert isinstance(linear, KdaWeights)
    assert isinstance(latent, MlaWeights)
    assert isinstance(moe, MoeWeights)
    assert linear.filter_query.shape == (64, 4)
    assert linear.decay_rate.shape == (2,)
    assert latent.key_up.shape == (2, 32, 32)
    assert latent.value_up.shape == (2, 64, 32)
    assert latent.indexer.slot_bias.shape == (4, 32)
    assert moe.experts.gate.shape == (6, 32, 64)
    assert moe.experts.down.shape == (6, 64, 32)
    assert weights.layers[0].hyper_attn is not None
    assert weights.layers[0].hyper_attn.fn.shape == (24, 256)
    assert weights.draft is not None
    assert weights.draft.layer.hyper_attn is None
    assert weights.draft.join.shape == (64, 128)


def test_each_field_holds_the_tensor_it_is_named_after(tmp_path: Path) -> None:
    path = write_model(tmp_path, Tiny(arch="glm5-next"))
    want = oracle_values(path)
    weights = load(path)
    linear, latent = weights.layers[1].attention, weights.layers[2].attention
    assert isinstance(linear, KdaWeights)
    assert isinstance(latent, MlaWeights)
    assert linear.decay_down.name == "blk.1.ssm_f_a.weight"
    assert linear.decay_up.name == "blk.1.ssm_f_b.weight"
    assert linear.gate_down.name == "blk.1.ssm_g_a.weight"
    assert latent.indexer.head_weight.name == "blk.2.indexer.proj.weight"
    assert latent.latent_down.name == "blk.2.attn_kv_a_mqa.weight"
    np.testing.assert_array_equal(linear.decay_rate, -want["blk.1.ssm_a"])
    assert (linear.decay_rate > 0).all()
    np.testing.assert_array_equal(linear.decay_bias, want["blk.1.ssm_dt.bias"])
    np.testing.assert_array_equal(
        linear.filter_key, want["blk.1.ssm_conv1d_k.weight"].reshape(64, 4)
    )
    np.testing.assert_array_equal(
        latent.indexer.slot_bias, want["blk.2.indexer_compressor_ape.weight"]
    )
    assert linear.filter_key.dtype == np.float32


def test_matrices_are_views_of_the_mapped_file(tmp_path: Path) -> None:
    device = Recorder()
    with open_model(write_model(tmp_path)) as file:
        load_model(file, device)
        for stored in device.matrices:
            assert np.shares_memory(stored.data, file.data(stored.name))


def test_the_experts_of_every_layer_get_the_home_they_are_borrowed_from(tmp_path: Path) -> None:
    home, with_home, without = object(), Recorder(), Recorder()
    with open_model(write_model(tmp_path)) as file:
        geometry, weights = load_surveyed(file, survey(file), with_home, home=home)
        load_model(file, without)
    layers = [layer.index for layer in geometry.layers if not layer.dense]
    assert layers
    assert all(one is home for one in with_home.homes)
    assert without.homes == [None] * len(with_home.homes)
    held = [weights.layers[i].ffn for i in layers]
    assert [ffn.experts.layer for ffn in held if isinstance(ffn, MoeWeights)] == layers


def test_vectors_may_be_stored_in_any_type(tmp_path: Path) -> None:
    plain = tiny_model(Tiny()).tensor("blk.0.attn_norm.weight")
    values = np.frombuffer(plain.data, np.float32)

    def half(content: Content) -> None:
        tensor = content.tensor("blk.0.attn_norm.weight")
        tensor.type_id, tensor.data = 1, values.astype(np.float16).tobytes()

    got = load(write_model(tmp_path, edit=half)).layers[0].attn_norm
    np.testing.assert_array_equal(got, values.astype(np.float16).astype(np.float32))


def test_progress_grows_to_the_bytes_of_all_tensors(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    with open_model(write_model(tmp_path)) as file:
        total = sum(info.nbytes for info in file.tensors.values())
        load_model(file, Recorder(), progress=lambda done, of: seen.append((done, of)))
        assert len(seen) == len(file.tensors)
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})
    assert seen[-1] == (total, total)
    assert {of for _, of in seen} == {total}


def test_nothing_reaches_the_device_when_the_last_tensor_is_wrong(tmp_path: Path) -> None:
    def spoil(content: Content) -> None:
        content.tensors[-1].ne = (8, 8)

    device = Recorder()
    with (
        open_model(write_model(tmp_path, edit=spoil)) as file,
        pytest.raises(ModelFileError, match="shape"),
    ):
        load_model(file, device)
    assert device.matrices == []
    assert device.uploads == []


def test_a_missing_head_is_the_embedding_and_a_missing_draft_is_none(tmp_path: Path) -> None:
    def strip(content: Content) -> None:
        content.drop("output.weight", "blk.4.")

    weights = load(write_model(tmp_path, edit=strip))
    assert weights.head is weights.embedding
    assert weights.draft is None


def own_tables(content: Content) -> None:
    """Give the draft block an embedding table and a head of its own."""
    table = content.tensor("token_embd.weight")
    content.tensors += [
        Tensor(f"blk.4.nextn.{name}.weight", table.ne, table.type_id, table.data)
        for name in ("embed_tokens", "shared_head_head")
    ]


@pytest.mark.parametrize(
    ("edit", "names"),
    [
        (None, ("token_embd.weight", "output.weight")),
        (own_tables, ("blk.4.nextn.embed_tokens.weight", "blk.4.nextn.shared_head_head.weight")),
    ],
)
def test_the_draft_block_uses_its_own_tables_when_it_has_them(
    tmp_path: Path, edit: Edit | None, names: tuple[str, str]
) -> None:
    draft = load(write_model(tmp_path, edit=edit)).draft
    assert draft is not None
    assert (draft.embedding.name, draft.head.name) == names


def test_a_decay_stored_with_the_wrong_sign_is_refused(tmp_path: Path) -> None:
    def flip(content: Content) -> None:
        tensor = content.tensor("blk.1.ssm_a")
        tensor.data = (-np.frombuffer(tensor.data, np.float32)).tobytes()

    with pytest.raises(ModelFileError, match=r"blk.1.ssm_a holds positive values"):
        load(write_model(tmp_path, edit=flip))
