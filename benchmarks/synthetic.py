"""Write a GGUF file with the real model's widths and random weights, as deep as asked.

For speed and contract runs: full-size matrices without 90 GB. The text it produces is noise.

    python -m benchmarks.synthetic OUT.gguf --layers 4 --experts 16 --vocabulary 2048
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import gguf
import numpy as np

from localglm.model.geometry import (
    AttentionKind,
    Geometry,
    HyperGeometry,
    IndexerGeometry,
    KdaGeometry,
    LayerGeometry,
    MlaGeometry,
    MoeGeometry,
)
from localglm.model.roles import Expected, Role, expected_draft_tensors, expected_tensors
from localglm.quant.decode import decode_rows
from localglm.quant.types import Family, StorageType

ARCH = "glm5next"
DENSE_LEAD = 3
LIMIT = 10.0
# A prime period: no two rows or experts of a tensor hold the same bytes.
PERIOD = 16381
PIECE = 32 << 20

RECIPES = {
    "iq2": {Role.EXPERT_GATE_UP: "IQ2_XXS", Role.EXPERT_DOWN: "IQ3_XXS", Role.SHARED: "Q5_K",
            Role.DENSE: "Q5_K"},
    "iq4": {Role.EXPERT_GATE_UP: "IQ4_XS", Role.EXPERT_DOWN: "IQ4_XS", Role.SHARED: "Q6_K",
            Role.DENSE: "Q6_K"},
    "q8": {Role.EXPERT_GATE_UP: "Q8_0", Role.EXPERT_DOWN: "Q8_0", Role.SHARED: "Q8_0",
           Role.DENSE: "Q8_0"},
}  # fmt: skip
COMMON = {
    Role.EMBEDDING: "Q4_K", Role.HEAD: "Q6_K", Role.KDA: "Q8_0", Role.MLA: "Q8_0",
    Role.INDEXER: "Q8_0", Role.HYPER: "F32", Role.ROUTER: "F32", Role.NORM: "F32",
    Role.DRAFT: "Q8_0",
}  # fmt: skip
# Where a block keeps its float16 scales, and their size relative to the first one.
SCALES = {
    "Q2_K": ((80, 1.0), (82, 1.5)), "Q3_K": ((108, 1.0),), "Q4_K": ((0, 1.0), (2, 7.5)),
    "Q5_K": ((0, 1.0), (2, 15.5)), "Q6_K": ((208, 1.0),),
}  # fmt: skip


def geometry(
    layers: int, experts: int, vocabulary: int, *, draft: bool = False, top_k: int = 2048
) -> Geometry:
    """Return the real widths with ``layers`` trunk layers: MLA at 3, 7, ..., KDA elsewhere."""

    def layer(index: int) -> LayerGeometry:
        latent = index >= layers or index % 4 == 3
        kind = AttentionKind.MLA if latent else AttentionKind.KDA
        return LayerGeometry(index, kind, index < DENSE_LEAD, LIMIT, LIMIT)

    return Geometry(
        width=4096, vocabulary=vocabulary, context_length=1 << 20, dense_width=12288,
        norm_epsilon=1e-5, layer_norm_epsilon=1e-6,
        hyper=HyperGeometry(4, 20, 1e-6), kda=KdaGeometry(64, 128, 4, -5.0),
        mla=MlaGeometry(64, 1536, 512, 256, 256), indexer=IndexerGeometry(32, 128, top_k, 4, True),
        moe=MoeGeometry(experts, min(8, experts), 2048, 2048, 2.5),
        layers=tuple(layer(i) for i in range(layers)), draft=layer(layers) if draft else None,
    )  # fmt: skip


def storage(item: Expected, recipe: dict[Role, str]) -> StorageType:
    """Return the type of a tensor: vectors and filters stay F32, narrow rows fall back to Q8_0."""
    small = len(item.shape) == 1 or "conv1d" in item.name or "_ape" in item.name
    if small or "indexer.proj" in item.name:
        return StorageType.F32
    wanted = StorageType[recipe.get(item.role, COMMON.get(item.role, "Q8_0"))]
    narrow = wanted.family is Family.SUPER and item.shape[-1] % 256
    return StorageType.Q8_0 if narrow else wanted


def values(item: Expected, rng: np.random.Generator) -> np.ndarray:
    """Return the float32 values of a small tensor, in the range the real ones have."""
    name, shape = item.name, item.shape
    if name.endswith(("norm.weight", "scale.weight")):
        return np.full(shape, 1.0 if "norm" in name else 0.3, np.float32)
    if name.endswith("ssm_a"):
        return -np.exp(rng.uniform(-1, 1, shape)).astype(np.float32)
    if name.endswith("ssm_dt.bias"):
        return rng.uniform(-2, 2, shape).astype(np.float32)
    width = 0.05 if "exp_probs" in name else 0.5
    return rng.uniform(-width, width, shape).astype(np.float32)


def tile(kind: StorageType, spread: float, rng: np.random.Generator) -> bytes:
    """Return PERIOD random blocks whose decoded values have standard deviation ``spread``."""
    if kind.family is Family.FLOAT:
        return (rng.standard_normal(PERIOD) * spread).astype(np.float32).tobytes()
    layout = kind.value
    raw = rng.integers(0, 256, (PERIOD, layout.nbytes), dtype=np.uint8)
    relative = rng.uniform(0.5, 1.5, PERIOD)

    def scaled(factor: float) -> np.ndarray:
        for at, ratio in SCALES.get(kind.name, ((0, 1.0),)):
            field = (relative * factor * ratio).astype(np.float16)
            raw[:, at : at + 2] = field.view(np.uint8).reshape(-1, 2)
        return raw

    found = decode_rows(kind, scaled(1.0)[:512])
    return scaled(spread / float(np.sqrt(np.mean(found.astype(np.float64) ** 2)))).tobytes()


def pieces(block: bytes, total: int) -> Iterator[bytes]:
    """Repeat ``block`` to ``total`` bytes."""
    big = block * max(1, min(PIECE, total) // len(block))
    while total > 0:
        yield big[: min(total, len(big))]
        total -= len(big)


def metadata(out: gguf.GGUFWriter, g: Geometry) -> None:
    """Write the keys a GLM-5.3-Flash file has; no tokenizer."""
    blocks = len(g.layers) + (g.draft is not None)
    kinds = [*g.layers, *([g.draft] if g.draft else [])]
    whole = {
        "block_count": blocks, "context_length": g.context_length, "embedding_length": g.width,
        "feed_forward_length": g.dense_width, "vocab_size": g.vocabulary,
        "attention.head_count": g.mla.heads, "attention.q_lora_rank": g.mla.query_latent,
        "attention.kv_lora_rank": g.mla.latent, "attention.key_length": g.mla.latent,
        "attention.value_length": g.mla.latent, "attention.key_length_mla": g.mla.key_width,
        "attention.value_length_mla": g.mla.value_width, "rope.dimension_count": 0,
        "attention.indexer.head_count": g.indexer.heads,
        "attention.indexer.key_length": g.indexer.width,
        "attention.indexer.top_k": g.indexer.top_k, "attention.indexer.kpool": g.indexer.pool,
        "ssm.conv_kernel": g.kda.taps, "kda.head_dim": g.kda.head_width,
        "hyper_connection.count": g.hyper.streams,
        "hyper_connection.sinkhorn_iterations": g.hyper.sinkhorn_rounds,
        "leading_dense_block_count": DENSE_LEAD, "expert_count": g.moe.experts,
        "expert_used_count": g.moe.used, "expert_shared_count": 1,
        "expert_feed_forward_length": g.moe.expert_width,
        "expert_shared_feed_forward_length": g.moe.shared_width, "expert_gating_func": 2,
        "nextn_predict_layers": int(g.draft is not None),
    }  # fmt: skip
    real = {
        "attention.layer_norm_rms_epsilon": g.norm_epsilon,
        "attention.layer_norm_epsilon": g.layer_norm_epsilon,
        "kda.gate_lower_bound": g.kda.gate_lower_bound,
        "hyper_connection.epsilon": g.hyper.epsilon, "expert_weights_scale": g.moe.scale,
    }  # fmt: skip
    for key, number in whole.items():
        out.add_uint32(f"{ARCH}.{key}", number)
    for key, number in real.items():
        out.add_float32(f"{ARCH}.{key}", number)
    out.add_bool(f"{ARCH}.expert_weights_norm", True)
    heads = [int(k.attention is AttentionKind.MLA) for k in kinds]
    out.add_array(f"{ARCH}.attention.head_count_kv", heads)
    out.add_array(f"{ARCH}.swiglu_clamp_exp", [LIMIT] * blocks)
    out.add_array(f"{ARCH}.swiglu_clamp_shexp", [LIMIT] * blocks)
    out.add_tokenizer_model("none")


def write(path: Path, g: Geometry, recipe: str, seed: int = 1) -> int:
    """Write the file and return its bytes."""
    items = [e for e in expected_tensors(g) + expected_draft_tensors(g)
             if not e.name.endswith(("embed_tokens.weight", "head_head.weight"))]  # fmt: skip
    types = {e.name: storage(e, RECIPES[recipe]) for e in items}
    out = gguf.GGUFWriter(path, ARCH)
    metadata(out, g)
    for e in items:
        kind = gguf.GGMLQuantizationType(types[e.name].value.ggml_id)
        nbytes = types[e.name].row_bytes(int(np.prod(e.shape)))
        out.add_tensor_info(e.name, e.shape, np.dtype(np.float32), nbytes, raw_dtype=kind)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_ti_data_to_file()
    stream = out.fout[0]
    stream.write(bytes(-stream.tell() % out.data_alignment))
    for number, e in enumerate(items):
        rng = np.random.default_rng([seed, number])
        for piece in content(e, types[e.name], rng):
            stream.write(piece)
        stream.write(bytes(-stream.tell() % out.data_alignment))
    size = int(stream.tell())
    out.close()
    return size


def content(item: Expected, kind: StorageType, rng: np.random.Generator) -> Iterator[bytes]:
    """Yield the bytes of one tensor."""
    if kind is StorageType.F32 and item.role not in {Role.HYPER, Role.ROUTER}:
        yield values(item, rng).tobytes()
        return
    if len(item.shape) == 1:
        yield values(item, rng).tobytes()
        return
    spread = 1.0 if item.role is Role.EMBEDDING else item.shape[-1] ** -0.5
    yield from pieces(tile(kind, spread, rng), kind.row_bytes(int(np.prod(item.shape))))


def main() -> None:
    """Write a file from the command line."""
    parser = argparse.ArgumentParser(description="Write a full-width synthetic model.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--experts", type=int, default=288)
    parser.add_argument("--vocabulary", type=int, default=154880)
    parser.add_argument("--recipe", choices=sorted(RECIPES), default="iq2")
    parser.add_argument("--draft", action="store_true", help="append the draft block")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    shape = geometry(given.layers, given.experts, given.vocabulary, draft=given.draft)
    size = write(given.out, shape, given.recipe, given.seed)
    print(f"{given.out}: {size / 1e9:.2f} GB, {given.layers} layers, recipe {given.recipe}")


if __name__ == "__main__":
    main()
