"""The full-size model, as a list of tensors without data: counts of the published model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from localglm.gguf.file import ModelFile
from localglm.gguf.header import Header, TensorInfo
from localglm.model.describe import describe
from localglm.model.inventory import survey
from localglm.quant.types import StorageType
from tests import gguf_files as files
from tests.gguf_files import Tensor, Tiny

REAL = Tiny(
    layers="KKKM" * 11 + "K",
    dense_lead=3,
    width=4096,
    vocabulary=154_880,
    heads=64,
    kda_width=128,
    query_latent=1536,
    latent=512,
    key_width=256,
    value_width=256,
    indexer_heads=32,
    indexer_width=128,
    top_k=2048,
    dense_width=12_288,
    expert_width=2048,
    experts=288,
    used=8,
    context=1 << 20,
    tokenizer=False,
    storage="IQ2_XXS",
)


class Outline(files._Maker):
    """Lists matrices without making their data."""

    def matrix(self, name: str, *ne: int, storage: str | None = None) -> None:
        kind = storage or ("F16" if ne[0] % 256 else self.spec.storage)
        self._add(name, ne, kind, b"")


def info(tensor: Tensor) -> TensorInfo:
    kind = StorageType.from_ggml_id(tensor.type_id)
    assert kind is not None
    nbytes = kind.row_bytes(int(np.prod(tensor.ne, dtype=np.int64)))
    return TensorInfo(tensor.name, tensor.ne[::-1], kind, 0, 0, nbytes, kind.name)


def model(spec: Tiny = REAL) -> ModelFile:
    tensors: list[Tensor] = []
    maker = Outline(spec, tensors)
    maker.matrix("token_embd.weight", spec.width, spec.vocabulary)
    maker.vector("output_norm.weight", np.ones(spec.width))
    maker.matrix("output.weight", spec.width, spec.vocabulary)
    for index in range(spec.blocks):
        maker.block(index)
    metadata = {key: plain(value) for key, value in files._metadata(spec).items()}
    header = Header(3, metadata, tuple(map(info, tensors)), 0, 32)
    return ModelFile((Path("real.gguf"),), [header], ())


def plain(value: files.Value) -> object:
    return np.array(value.value) if isinstance(value.value, list) else value.value


def test_the_real_model_has_1412_tensors_and_all_are_used() -> None:
    found = survey(model())
    assert len(found.tensors) == 1412
    assert found.notes == ()
    draft = [name for name in found.tensors if name.startswith("blk.45.")]
    assert len(draft) == 29


def test_the_real_model_has_its_published_parameter_counts() -> None:
    about = describe(model())
    assert about.parameters.trunk == pytest.approx(313.35e9, rel=0.001)
    assert about.parameters.draft == pytest.approx(7.4e9, rel=0.01)
    table = 154_880 * 4096  # the published count of active weights includes the embedding table
    assert about.parameters.per_token + table == pytest.approx(17.38e9, rel=0.001)
    assert (about.layers.linear, about.layers.latent, about.layers.dense) == (34, 11, 3)
    assert about.geometry.indexer.pools_kept == 512
    assert about.geometry.draft is not None
    assert about.geometry.draft.index == 45
