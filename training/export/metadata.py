"""The metadata of an exported model: every key of the architecture, then tokenizer and template."""

from __future__ import annotations

from gguf import GGUFWriter

from training.data.vocabulary import entries
from training.model.config import ModelConfig

ARCH = "glm5next"
NAME = "localglm demo"
SIGMOID = 2


def add_metadata(writer: GGUFWriter, c: ModelConfig, *, tokenizer: bool) -> None:
    """Write all keys. Without ``tokenizer`` the file computes but does not talk."""
    writer.add_name(NAME)
    writer.add_description("A small demonstration model, trained on generated text only.")
    writer.add_license("MIT")
    for key, value in _counts(c).items():
        writer.add_uint32(f"{ARCH}.{key}", value)
    for key, number in _numbers(c).items():
        writer.add_float32(f"{ARCH}.{key}", number)
    blocks = range(c.layers + 1)
    writer.add_bool(f"{ARCH}.expert_weights_norm", True)
    writer.add_array(f"{ARCH}.attention.head_count_kv", [int(c.is_mla(i)) for i in blocks])
    for kind in ("exp", "shexp"):
        writer.add_array(f"{ARCH}.swiglu_clamp_{kind}", [float(c.limit) for _ in blocks])
    if tokenizer:
        _add_tokenizer(writer)


def _counts(c: ModelConfig) -> dict[str, int]:
    return {
        "block_count": c.layers + 1,
        "nextn_predict_layers": 1,
        "context_length": c.context_length,
        "embedding_length": c.width,
        "feed_forward_length": c.dense_width,
        "vocab_size": c.vocabulary,
        "attention.head_count": c.heads,
        "attention.q_lora_rank": c.query_latent,
        "attention.kv_lora_rank": c.latent,
        "attention.key_length": c.latent,
        "attention.value_length": c.latent,
        "attention.key_length_mla": c.key_width,
        "attention.value_length_mla": c.value_width,
        "attention.indexer.head_count": c.indexer_heads,
        "attention.indexer.key_length": c.indexer_width,
        "attention.indexer.top_k": c.top_k,
        "attention.indexer.kpool": c.pool,
        "rope.dimension_count": 0,
        "ssm.conv_kernel": c.taps,
        "kda.head_dim": c.kda_width,
        "hyper_connection.count": c.streams,
        "hyper_connection.sinkhorn_iterations": c.sinkhorn_rounds,
        "leading_dense_block_count": c.leading_dense,
        "expert_count": c.experts,
        "expert_used_count": c.used,
        "expert_shared_count": 1,
        "expert_feed_forward_length": c.expert_width,
        "expert_shared_feed_forward_length": c.shared_width,
        "expert_gating_func": SIGMOID,
        "expert_group_count": 1,
        "expert_group_used_count": 1,
    }


def _numbers(c: ModelConfig) -> dict[str, float]:
    return {
        "attention.layer_norm_rms_epsilon": c.norm_epsilon,
        "attention.layer_norm_epsilon": c.layer_norm_epsilon,
        "kda.gate_lower_bound": c.gate_lower_bound,
        "hyper_connection.epsilon": c.hyper_epsilon,
        "expert_weights_scale": c.router_scale,
    }


def _add_tokenizer(writer: GGUFWriter) -> None:
    for key, value in entries().metadata().items():
        if isinstance(value, str):
            writer.add_string(key, value)
        elif isinstance(value, list):
            writer.add_array(key, value)
        else:
            assert isinstance(value, int)
            writer.add_uint32(key, value)
