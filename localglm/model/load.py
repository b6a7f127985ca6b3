"""From a checked file to weights on a device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from localglm.arrays import F32
from localglm.backends.base import (
    Buffer,
    Device,
    ExpertHome,
    Experts,
    Matrix,
    StoredExperts,
    StoredMatrix,
)
from localglm.errors import ModelFileError
from localglm.gguf import ModelFile
from localglm.model.geometry import AttentionKind, Geometry, LayerGeometry
from localglm.model.inventory import Survey, survey
from localglm.model.weights import (
    DraftWeights,
    FfnWeights,
    HyperWeights,
    IndexerWeights,
    KdaWeights,
    LayerWeights,
    MlaWeights,
    ModelWeights,
    MoeWeights,
)
from localglm.quant.decode import decode_rows

Progress = Callable[[int, int], None]


def load_model(
    file: ModelFile, device: Device, *, progress: Progress | None = None
) -> tuple[Geometry, ModelWeights]:
    """Check the whole set, then hand every weight to the device.

    ``progress`` is called with the bytes done and the bytes in all. The matrices are views of the
    mapped file. Raises: ModelFileError before anything reaches the device when the set does not
    pass the check.
    """
    return load_surveyed(file, survey(file), device, progress=progress)


def load_surveyed(
    file: ModelFile, found: Survey, device: Device, *, progress: Progress | None = None,
    home: ExpertHome | None = None,
) -> tuple[Geometry, ModelWeights]:  # fmt: skip
    """Load a set that ``inventory.survey`` has already checked.

    With ``home`` the routed experts are borrowed from there, not read from the mapped file.
    """
    total = sum(item.info.nbytes for item in found.tensors.values())
    source = _Source(file, found, device, total, progress, home)
    geometry = found.geometry
    embedding = source.matrix("token_embd.weight")
    head = source.optional_matrix("output.weight") or embedding
    weights = ModelWeights(
        embedding=embedding,
        output_norm=source.vector("output_norm.weight"),
        head=head,
        layers=tuple(_layer(source, layer, hyper=True) for layer in geometry.layers),
        draft=_draft(source, geometry.draft, embedding, head),
    )
    return geometry, weights


@dataclass(slots=True)
class _Source:
    """Hands out tensors of a surveyed file by name and counts the bytes."""

    file: ModelFile
    found: Survey
    device: Device
    total: int
    progress: Progress | None
    home: ExpertHome | None
    done: int = field(default=0)

    def matrix(self, name: str) -> Matrix:
        """Pass a weight on in its storage type, without a copy."""
        return self.device.matrix(self._stored(name))

    def experts(self, at: str, layer: int) -> Experts:
        """Pass the routed experts of a layer on."""
        parts = (self._stored(f"{at}ffn_{part}_exps.weight") for part in ("gate", "up", "down"))
        return self.device.experts(StoredExperts(layer, *parts), self.home)

    def _stored(self, name: str) -> StoredMatrix:
        item = self.found.tensors[name]
        assert item.info.type is not None
        self._count(item.info.nbytes)
        return StoredMatrix(
            item.info.name, item.expected.shape, item.info.type, self.file.data(item.info.name)
        )

    def optional_matrix(self, name: str) -> Matrix | None:
        """Pass a weight on, or None when the file does not have it."""
        return self.matrix(name) if name in self.found.tensors else None

    def vector(self, name: str) -> Buffer:
        """Decode a vector or small table to float32 and upload it."""
        return self.device.upload(self.values(name))

    def values(self, name: str) -> F32:
        """Decode a tensor to float32 in the expected shape."""
        item = self.found.tensors[name]
        assert item.info.type is not None
        row_bytes = item.info.type.row_bytes(item.info.shape[-1])
        rows = self.file.data(item.info.name).reshape(-1, row_bytes)
        self._count(item.info.nbytes)
        return decode_rows(item.info.type, rows).reshape(item.expected.shape)

    def _count(self, nbytes: int) -> None:
        self.done += nbytes
        if self.progress is not None:
            self.progress(self.done, self.total)


def _layer(source: _Source, layer: LayerGeometry, *, hyper: bool) -> LayerWeights:
    at = f"blk.{layer.index}."
    is_kda = layer.attention is AttentionKind.KDA
    return LayerWeights(
        attn_norm=source.vector(f"{at}attn_norm.weight"),
        ffn_norm=source.vector(f"{at}ffn_norm.weight"),
        attention=_kda(source, at) if is_kda else _mla(source, at),
        ffn=_ffn(source, at, "") if layer.dense else _moe(source, at, layer.index),
        hyper_attn=_hyper(source, f"{at}hc_attn_") if hyper else None,
        hyper_ffn=_hyper(source, f"{at}hc_ffn_") if hyper else None,
    )


def _hyper(source: _Source, at: str) -> HyperWeights:
    return HyperWeights(
        fn=source.matrix(f"{at}fn.weight"),
        base=source.vector(f"{at}base.weight"),
        scale=source.vector(f"{at}scale.weight"),
    )


def _kda(source: _Source, at: str) -> KdaWeights:
    return KdaWeights(
        query=source.matrix(f"{at}attn_q.weight"),
        key=source.matrix(f"{at}attn_k.weight"),
        value=source.matrix(f"{at}attn_v.weight"),
        filter_query=source.vector(f"{at}ssm_conv1d_q.weight"),
        filter_key=source.vector(f"{at}ssm_conv1d_k.weight"),
        filter_value=source.vector(f"{at}ssm_conv1d_v.weight"),
        decay_down=source.matrix(f"{at}ssm_f_a.weight"),
        decay_up=source.matrix(f"{at}ssm_f_b.weight"),
        decay_bias=source.vector(f"{at}ssm_dt.bias"),
        decay_rate=source.device.upload(_decay_rate(source, f"{at}ssm_a")),
        beta=source.matrix(f"{at}ssm_beta.weight"),
        gate_down=source.matrix(f"{at}ssm_g_a.weight"),
        gate_up=source.matrix(f"{at}ssm_g_b.weight"),
        norm=source.vector(f"{at}ssm_norm.weight"),
        output=source.matrix(f"{at}attn_output.weight"),
    )


def _decay_rate(source: _Source, name: str) -> F32:
    """Files store -exp(A_log); the ops take exp(A_log)."""
    stored = source.values(name)
    if (stored > 0).any():
        raise ModelFileError(
            f"{name} holds positive values",
            why="decay rates are stored as -exp(A_log), which is never positive",
            try_="use a file converted by a current tool",
        )
    return -stored


def _mla(source: _Source, at: str) -> MlaWeights:
    return MlaWeights(
        query_down=source.matrix(f"{at}attn_q_a.weight"),
        query_norm=source.vector(f"{at}attn_q_a_norm.weight"),
        query_up=source.matrix(f"{at}attn_q_b.weight"),
        latent_down=source.matrix(f"{at}attn_kv_a_mqa.weight"),
        latent_norm=source.vector(f"{at}attn_kv_a_norm.weight"),
        key_up=source.matrix(f"{at}attn_k_b.weight"),
        value_up=source.matrix(f"{at}attn_v_b.weight"),
        output=source.matrix(f"{at}attn_output.weight"),
        indexer=IndexerWeights(
            query=source.matrix(f"{at}indexer.attn_q_b.weight"),
            key=source.matrix(f"{at}indexer.attn_k.weight"),
            key_norm_weight=source.vector(f"{at}indexer.k_norm.weight"),
            key_norm_bias=source.vector(f"{at}indexer.k_norm.bias"),
            head_weight=source.matrix(f"{at}indexer.proj.weight"),
            gate=source.matrix(f"{at}indexer_compressor_gate.weight"),
            slot_bias=source.vector(f"{at}indexer_compressor_ape.weight"),
        ),
    )


def _ffn(source: _Source, at: str, kind: str) -> FfnWeights:
    return FfnWeights(
        gate=source.matrix(f"{at}ffn_gate{kind}.weight"),
        up=source.matrix(f"{at}ffn_up{kind}.weight"),
        down=source.matrix(f"{at}ffn_down{kind}.weight"),
    )


def _moe(source: _Source, at: str, layer: int) -> MoeWeights:
    return MoeWeights(
        router=source.matrix(f"{at}ffn_gate_inp.weight"),
        bias=source.vector(f"{at}exp_probs_b.bias"),
        experts=source.experts(at, layer),
        shared=_ffn(source, at, "_shexp"),
    )


def _draft(
    source: _Source, layer: LayerGeometry | None, embedding: Matrix, head: Matrix
) -> DraftWeights | None:
    """Load the draft block; its own embedding and head are used when the file has them."""
    if layer is None:
        return None
    at = f"blk.{layer.index}.nextn."
    return DraftWeights(
        layer=_layer(source, layer, hyper=False),
        join=source.matrix(f"{at}eh_proj.weight"),
        embedding_norm=source.vector(f"{at}enorm.weight"),
        hidden_norm=source.vector(f"{at}hnorm.weight"),
        output_norm=source.vector(f"{at}shared_head_norm.weight"),
        embedding=source.optional_matrix(f"{at}embed_tokens.weight") or embedding,
        head=source.optional_matrix(f"{at}shared_head_head.weight") or head,
    )
