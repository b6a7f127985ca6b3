"""From the metadata of a file to the geometry of the model.

Everything localglm cannot compute is refused by name.

Source: section 9 of the model specification (both dialects; defaults are those of the published
files).
"""

from __future__ import annotations

from localglm.gguf import ModelFile, StringArray
from localglm.model.blocks import Blocks, find_blocks
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
from localglm.model.keys import Keys

STREAMS = 4
SIGMOID = 2
MOST_SINKHORN_ROUNDS = 1000


def read_geometry(file: ModelFile) -> Geometry:
    """Read the geometry of a model.

    Raises: ModelFileError naming the key that is missing or whose value cannot be used.
    """
    return geometry_and_notes(file)[0]


def geometry_and_notes(file: ModelFile) -> tuple[Geometry, tuple[str, ...]]:
    """Read the geometry, and one line for each value that was assumed or overruled."""
    keys = Keys(file)
    blocks = find_blocks(file, keys)
    _refuse_variants(keys)
    heads = keys.count("attention.head_count")
    layers = _layers(keys, blocks)
    geometry = Geometry(
        width=keys.count("embedding_length"),
        vocabulary=_vocabulary(file, keys),
        context_length=keys.count("context_length"),
        dense_width=keys.count("feed_forward_length"),
        norm_epsilon=keys.epsilon("attention.layer_norm_rms_epsilon"),
        layer_norm_epsilon=keys.assumed(
            keys.optional_epsilon("attention.layer_norm_epsilon"),
            "attention.layer_norm_epsilon",
            1e-6,
        ),
        hyper=_hyper(keys),
        kda=_kda(keys, heads),
        mla=_mla(keys, heads),
        indexer=_indexer(file, keys, blocks, layers),
        moe=_moe(keys),
        layers=tuple(layers[: blocks.trunk]),
        draft=layers[blocks.trunk] if blocks.draft is not None else None,
    )
    return geometry, keys.notes


def _refuse_variants(keys: Keys) -> None:
    """Refuse relatives of the model that need other arithmetic."""
    expected = {
        "rope.dimension_count": (0, "a rotary width of 0 (no rotary embedding)"),
        "expert_gating_func": (SIGMOID, "2 (sigmoid)"),
        "expert_group_count": (1, "one expert group"),
        "expert_group_used_count": (1, "one expert group"),
    }
    for key, (only, meaning) in expected.items():
        value = keys.optional_count(key, low=0)
        if value is not None and value != only:
            raise keys.refuse(key, f"it is {value}; localglm computes {meaning}")
    if keys.optional_flag("expert_weights_norm") is False:
        raise keys.refuse("expert_weights_norm", "it is false; localglm normalises expert weights")


def _vocabulary(file: ModelFile, keys: Keys) -> int:
    """Rows of the embedding table; the key and the token list may not contradict them."""
    stated = keys.optional_count("vocab_size")
    table = file.tensors.get("token_embd.weight")
    tokens = file.metadata.get("tokenizer.ggml.tokens")
    listed = len(tokens) if isinstance(tokens, StringArray) else None
    rows = table.shape[0] if table is not None and len(table.shape) == 2 else None
    if stated is not None and rows is not None and stated != rows:
        raise keys.refuse("vocab_size", f"it is {stated}, but token_embd.weight has {rows} rows")
    size = keys.required(rows or stated or listed, "vocab_size")
    if listed is not None and listed > size:
        raise keys.refuse(
            "vocab_size", f"{listed} tokens are listed, but the model has {size} rows"
        )
    if listed is not None and listed < size:
        keys.note(f"{size - listed} rows of the vocabulary have no token")
    return size


def _hyper(keys: Keys) -> HyperGeometry:
    streams = keys.count("hyper_connection.count")
    if streams != STREAMS:
        raise keys.refuse("hyper_connection.count", f"it is {streams}; localglm computes {STREAMS}")
    return HyperGeometry(
        streams=streams,
        sinkhorn_rounds=keys.count(
            "hyper_connection.sinkhorn_iterations", high=MOST_SINKHORN_ROUNDS
        ),
        epsilon=keys.epsilon("hyper_connection.epsilon"),
    )


def _kda(keys: Keys, heads: int) -> KdaGeometry:
    width = keys.count("kda.head_dim")
    for key, expected in (("ssm.inner_size", heads * width), ("ssm.group_count", heads)):
        value = keys.optional_count(key)
        if value is not None and value != expected:
            raise keys.refuse(key, f"it is {value}; {heads} heads of {width} make it {expected}")
    bound = keys.number("kda.gate_lower_bound")
    if bound >= 0:
        raise keys.refuse("kda.gate_lower_bound", f"it is {bound:g}; a negative number is expected")
    return KdaGeometry(
        heads=heads,
        head_width=width,
        taps=keys.count("ssm.conv_kernel", low=2),
        gate_lower_bound=bound,
    )


def _mla(keys: Keys, heads: int) -> MlaGeometry:
    return MlaGeometry(
        heads=heads,
        query_latent=keys.count("attention.q_lora_rank"),
        latent=keys.count("attention.kv_lora_rank"),
        key_width=keys.count("attention.key_length_mla"),
        value_width=keys.count("attention.value_length_mla"),
    )


def _indexer(
    file: ModelFile, keys: Keys, blocks: Blocks, layers: list[LayerGeometry]
) -> IndexerGeometry:
    _refuse_indexer_types(keys, blocks, layers)
    pool = keys.optional_count("attention.indexer.kpool")
    if pool is None:
        pool = keys.required(_pool_of_tensors(file), "attention.indexer.kpool")
        keys.note(f"attention.indexer.kpool is absent: {pool}, as the compressor tensors have it")
    top_k = keys.count("attention.indexer.top_k")
    if top_k % pool:
        raise keys.refuse(
            "attention.indexer.top_k",
            f"it is {top_k}, which is no multiple of the pool size {pool}",
        )
    tail = keys.optional_flag("attention.indexer.kpool_select_tail")
    return IndexerGeometry(
        heads=keys.count("attention.indexer.head_count"),
        width=keys.count("attention.indexer.key_length"),
        top_k=top_k,
        pool=pool,
        select_tail=tail is not False,
    )


def _pool_of_tensors(file: ModelFile) -> int | None:
    """Tokens per pool, from the slot bias of any compressor."""
    for name, info in file.tensors.items():
        if name.endswith(("indexer_compressor_ape.weight", "indexer.kpool_ape.weight")):
            return info.shape[0] if len(info.shape) == 2 else 1
    return None


def _refuse_indexer_types(keys: Keys, blocks: Blocks, layers: list[LayerGeometry]) -> None:
    """Every latent layer must have an indexer of its own ("full")."""
    kinds = keys.per_layer("attention.indexer.types", len(layers), blocks.array_lengths)
    for layer, kind in zip(layers, kinds or [], strict=False):
        if layer.attention is AttentionKind.MLA and kind not in (True, "full"):
            raise keys.refuse(
                "attention.indexer.types",
                f"it is {kind!r} for layer {layer.index}; localglm computes full indexers only",
            )


def _moe(keys: Keys) -> MoeGeometry:
    experts = keys.count("expert_count")
    width = keys.count("expert_feed_forward_length")
    shared = keys.optional_count("expert_shared_count")
    shared_width = keys.optional_count("expert_shared_feed_forward_length")
    scale = keys.number("expert_weights_scale")
    if scale <= 0:
        raise keys.refuse("expert_weights_scale", f"it is {scale:g}; a positive number is expected")
    return MoeGeometry(
        experts=experts,
        used=keys.count("expert_used_count", high=experts),
        expert_width=width,
        shared_width=width * (shared or 1) if shared_width is None else shared_width,
        scale=scale,
    )


def _layers(keys: Keys, blocks: Blocks) -> list[LayerGeometry]:
    """Read the trunk layers and, as a last entry, the draft block."""
    total = blocks.trunk + (blocks.draft is not None)
    kinds = _attention_kinds(keys, blocks, total)
    dense = keys.assumed(
        keys.optional_count("leading_dense_block_count", low=0, high=blocks.trunk),
        "leading_dense_block_count",
        0,
    )
    expert = _limits(keys, "swiglu_clamp_exp", blocks, total)
    shared = _limits(keys, "swiglu_clamp_shexp", blocks, total)
    if shared is None:
        shared = expert
    return [
        LayerGeometry(
            index=index,
            attention=kinds[index],
            dense=index < dense,
            expert_limit=None if expert is None else expert[index],
            shared_limit=None if shared is None else shared[index],
        )
        for index in range(total)
    ]


def _attention_kinds(keys: Keys, blocks: Blocks, total: int) -> list[AttentionKind]:
    """0 key/value heads: linear attention. The draft block is latent whatever its entry says."""
    key = "attention.head_count_kv"
    counts = keys.required(keys.per_layer(key, total, blocks.array_lengths), key)
    for count in counts:
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise keys.refuse(key, f"it holds {count!r}; counts are expected")
    kinds = [AttentionKind.MLA if count else AttentionKind.KDA for count in counts]
    if blocks.draft is not None:
        kinds[blocks.trunk] = AttentionKind.MLA
    return kinds


def _limits(keys: Keys, key: str, blocks: Blocks, total: int) -> list[float | None] | None:
    """SwiGLU limits per block; 0 means no clamp."""
    values = keys.per_layer(key, total, blocks.array_lengths)
    if values is None:
        return None
    limits: list[float | None] = []
    for value in values:
        usable = isinstance(value, int | float) and not isinstance(value, bool)
        if not usable or not 0 <= float(value) < float("inf"):  # type: ignore[arg-type]
            raise keys.refuse(key, f"it holds {value!r}; limits of 0 or more are expected")
        limits.append(float(value) or None)  # type: ignore[arg-type]
    return limits
