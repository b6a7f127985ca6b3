"""The geometry in the metadata: dialects, spellings, assumed values, refusals by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from localglm.errors import ModelFileError
from localglm.gguf import open_model
from localglm.model.geometry import AttentionKind, Geometry
from localglm.model.read_geometry import geometry_and_notes, read_geometry
from tests import gguf_files as files
from tests import oracle_archive as oracle
from tests.gguf_files import Content, Edit, Tiny, Value, write_model

NAN = float("nan")


def put(key: str, kind: int, value: object) -> Edit:
    """Set an architecture key."""
    return lambda content: content.metadata.update({f"glm5next.{key}": Value(kind, value)})


def drop(*keys: str) -> Edit:
    """Remove architecture keys."""

    def edit(content: Content) -> None:
        for key in keys:
            del content.metadata[f"glm5next.{key}"]

    return edit


def rename(old: str, new: str) -> Edit:
    """Give an architecture key another spelling."""

    def edit(content: Content) -> None:
        content.metadata[f"glm5next.{new}"] = content.metadata.pop(f"glm5next.{old}")

    return edit


def both(*edits: Edit) -> Edit:
    """Apply several edits."""

    def edit(content: Content) -> None:
        for each in edits:
            each(content)

    return edit


def read(folder: Path, edit: Edit | None = None, spec: Tiny | None = None) -> Geometry:
    with open_model(write_model(folder, spec, edit=edit)) as file:
        return read_geometry(file)


def notes(folder: Path, edit: Edit) -> str:
    with open_model(write_model(folder, edit=edit)) as file:
        return " | ".join([*file.notes, *geometry_and_notes(file)[1]])


def refused(folder: Path, edit: Edit, spec: Tiny | None = None) -> str:
    with pytest.raises(ModelFileError) as caught:
        read(folder, edit, spec)
    return " ".join(caught.value.lines())


@pytest.mark.parametrize("name", oracle.NAMES)
def test_a_fixture_has_the_geometry_it_was_built_with(name: str) -> None:
    spec = json.loads((oracle.FOLDER / f"{name}.json").read_text())["spec"]
    with open_model(oracle.model_path(name)) as file:
        g = read_geometry(file)
    kinds = ["kda" if layer.attention is AttentionKind.KDA else "dsa" for layer in g.layers]
    assert kinds == spec["layers"]
    assert (g.draft is not None) == spec["mtp"]
    assert sum(layer.dense for layer in g.layers) == spec["dense_lead"]
    assert (g.width, g.vocabulary, g.dense_width) == tuple(
        spec[key] for key in ("hidden", "vocab", "dense_ff")
    )
    assert (g.kda.heads, g.kda.head_width, g.kda.taps) == tuple(
        spec[key] for key in ("heads", "kda_dim", "conv")
    )
    assert (g.mla.query_latent, g.mla.latent, g.mla.key_width, g.mla.value_width) == tuple(
        spec[key] for key in ("q_lora", "kv_lora", "nope", "v_dim")
    )
    assert (g.indexer.heads, g.indexer.width, g.indexer.top_k, g.indexer.pool) == tuple(
        spec[key] for key in ("idx_heads", "idx_dim", "top_k", "kpool")
    )
    assert (g.moe.experts, g.moe.used, g.moe.expert_width) == tuple(
        spec[key] for key in ("experts", "used", "moe_ff")
    )
    assert g.layers[0].expert_limit == pytest.approx(spec["clamp_exp"])
    assert g.layers[0].shared_limit == pytest.approx(spec["clamp_shexp"])
    assert g.kda.gate_lower_bound == spec["lower_bound"]
    assert g.indexer.select_tail


def test_both_dialects_give_the_same_geometry(tmp_path: Path) -> None:
    assert read(tmp_path, spec=Tiny(arch="glm5-next")) == read(tmp_path, spec=Tiny())
    assert read(tmp_path, spec=Tiny(experts=5)) != read(tmp_path, spec=Tiny())


def test_the_prefix_may_differ_from_the_architecture(tmp_path: Path) -> None:
    def swap(content: Content) -> None:
        content.metadata["general.architecture"] = Value(files.STRING, "glm5-next")

    assert read(tmp_path, swap) == read(tmp_path)


@pytest.mark.parametrize(
    "edit",
    [
        put("attention.head_count", files.U32, [2, 2, 2, 2, 2]),
        put("attention.head_count", files.U64, 2),
        put("attention.head_count_kv", files.I32, [0, 0, 1, 0]),
        put("attention.head_count_kv", files.U32, [0, 0, 64, 0, 0]),
        put("swiglu_clamp_exp", files.F32, 10.0),
        put("swiglu_clamp_exp", files.F32, [10.0] * 4),
        drop("swiglu_clamp_shexp"),
        drop("expert_gating_func", "expert_group_count", "rope.dimension_count"),
        drop("expert_shared_feed_forward_length"),
        drop("vocab_size"),
        put("attention.indexer.kpool_select_tail", files.BOOL, True),
        put("attention.indexer.types", files.BOOL, [False, False, True, False, True]),
        put("attention.indexer.types", files.STRING, ["full"] * 5),
        rename("attention.indexer.kpool", "attention.indexer.block_size"),
        drop("attention.indexer.kpool"),
        both(drop("attention.indexer.kpool"), put("attention.indexer.pool_size", files.U32, 4)),
        drop("attention.layer_norm_epsilon"),
        drop("nextn_predict_layers"),
        put("nextn_predict_layers", files.U32, 0),
        both(drop("nextn_predict_layers"), put("block_count", files.U32, 4)),
    ],
)
def test_other_ways_to_say_the_same_are_understood(tmp_path: Path, edit: Edit) -> None:
    plain = read(tmp_path)
    other = read(tmp_path, edit)
    assert other.layer_norm_epsilon == pytest.approx(plain.layer_norm_epsilon)
    assert other.layers == plain.layers
    assert other.draft == plain.draft
    assert (other.indexer, other.moe, other.mla, other.kda) == (
        plain.indexer,
        plain.moe,
        plain.mla,
        plain.kda,
    )
    assert other.vocabulary == plain.vocabulary


def test_the_older_dialect_is_mapped_and_said_so(tmp_path: Path) -> None:
    edit = both(
        rename("attention.indexer.kpool", "attention.indexer.block_size"),
        rename("kda.head_dim", "ssm.state_size"),
        put("ssm.inner_size", files.U32, 64),
        put("ssm.group_count", files.U32, 2),
    )
    assert read(tmp_path, edit) == read(tmp_path)
    said = notes(tmp_path, edit)
    assert "keys of an older converter are understood" in said
    assert "glm5next.ssm.state_size is read as kda.head_dim" in said
    assert notes(tmp_path, both()) == ""
    wrong = both(edit, put("ssm.inner_size", files.U32, 65))
    assert "glm5next.ssm.inner_size" in refused(tmp_path, wrong)


@pytest.mark.parametrize(
    ("edit", "phrase"),
    [
        (drop("attention.indexer.kpool"), "kpool is absent: 4, as the compressor tensors have it"),
        (drop("attention.layer_norm_epsilon"), "layer_norm_epsilon is absent: 1e-06 is assumed"),
        (drop("nextn_predict_layers"), "block 4 is a draft block: used"),
    ],
)
def test_what_is_assumed_is_noted(tmp_path: Path, edit: Edit, phrase: str) -> None:
    assert phrase in notes(tmp_path, edit)


def test_limits_of_zero_and_absent_limits_mean_no_clamp(tmp_path: Path) -> None:
    zero = both(
        put("swiglu_clamp_exp", files.F32, [0.0, 0.0, 7.0, 0.0, 0.0]),
        put("swiglu_clamp_shexp", files.F32, 0.0),
    )
    assert [layer.expert_limit for layer in read(tmp_path, zero).layers] == [None, None, 7.0, None]
    assert read(tmp_path, zero).layers[2].shared_limit is None
    absent = read(tmp_path, drop("swiglu_clamp_exp", "swiglu_clamp_shexp"))
    assert {(x.expert_limit, x.shared_limit) for x in absent.layers} == {(None, None)}
    only_shared = read(tmp_path, drop("swiglu_clamp_exp"))
    assert {(x.expert_limit, x.shared_limit) for x in only_shared.layers} == {(None, 10.0)}


def test_the_tail_is_left_out_only_when_the_key_says_so(tmp_path: Path) -> None:
    assert read(tmp_path).indexer.select_tail
    off = put("attention.indexer.kpool_select_tail", files.BOOL, False)
    assert not read(tmp_path, off).indexer.select_tail


def test_the_kind_of_a_layer_follows_the_array_and_the_draft_block_is_latent(
    tmp_path: Path,
) -> None:
    for pattern in ("MKKK", "KKKK", "MMKM"):
        geometry = read(tmp_path, spec=Tiny(layers=pattern))
        letters = ["KM"[layer.attention is AttentionKind.MLA] for layer in geometry.layers]
        assert "".join(letters) == pattern
        assert geometry.draft is not None
        assert geometry.draft.attention is AttentionKind.MLA
        assert geometry.draft.index == 4


REFUSED: dict[str, tuple[Edit, str]] = {
    "rotary": (put("rope.dimension_count", files.U32, 64), "rotary width of 0"),
    "softmax gating": (put("expert_gating_func", files.U32, 1), "sigmoid"),
    "two groups": (put("expert_group_count", files.U32, 2), "one expert group"),
    "raw weights": (put("expert_weights_norm", files.BOOL, False), "normalises"),
    "two streams": (put("hyper_connection.count", files.U32, 2), "it is 2; localglm computes 4"),
    "odd budget": (put("attention.indexer.top_k", files.U32, 18), "no multiple of the pool size"),
    "shared indexer": (put("attention.indexer.types", files.BOOL, [True, True, False, True, True]),
        "False for layer 2"),
    "shared indexer by name": (put("attention.indexer.types", files.STRING,
        ["full", "full", "shared", "full", "full"]), "'shared' for layer 2"),
    "short types": (put("attention.indexer.types", files.STRING, ["full"]), "number of entries"),
    "short array": (put("attention.head_count_kv", files.I32, [0, 0, 1]), "it has 3 entries"),
    "long array": (put("swiglu_clamp_exp", files.F32, [1.0] * 9), "9 entries; 4 or 5"),
    "empty array": (put("attention.head_count", files.U32, []), "array of 0 values"),
    "mixed heads": (put("attention.head_count", files.U32, [2, 2, 4]), "not all equal"),
    "negative heads": (put("attention.head_count_kv", files.I32, [0, 0, -1, 0, 1]), "holds -1"),
    "fractional heads": (put("attention.head_count_kv", files.F32, 0.5), "holds 0.5"),
    "heads as text": (put("attention.head_count", files.STRING, "2"), "whole number is expected"),
    "heads as truth": (put("attention.head_count", files.BOOL, True), "whole number is expected"),
    "no width": (put("embedding_length", files.U32, 0), "it is 0; 1 to"),
    "huge rounds": (put("hyper_connection.sinkhorn_iterations", files.U32, 1 << 30), "1 to 1000"),
    "nan epsilon": (put("attention.layer_norm_rms_epsilon", files.F32, NAN), "finite"),
    "epsilon of 2": (put("hyper_connection.epsilon", files.F32, 2.0), "between 0 and 1"),
    "epsilon as text": (put("hyper_connection.epsilon", files.STRING, "2"), "a number is expected"),
    "positive bound": (put("kda.gate_lower_bound", files.F32, 5.0), "negative number"),
    "negative limit": (put("swiglu_clamp_exp", files.F32, -1.0), "limits of 0 or more"),
    "limit as text": (put("swiglu_clamp_exp", files.STRING, "ten"), "limits of 0 or more"),
    "nan limit": (put("swiglu_clamp_shexp", files.F32, [NAN] * 5), "limits of 0 or more"),
    "no scale": (put("expert_weights_scale", files.F32, 0.0), "positive number"),
    "used > experts": (put("expert_used_count", files.U32, 7), "it is 7; 1 to 6"),
    "4 billion blocks": (put("block_count", files.U32, (1 << 32) - 1), "block_count"),
    "all drafts": (put("nextn_predict_layers", files.U32, 9), "nextn_predict_layers"),
    "other vocabulary": (put("vocab_size", files.U32, 321), "token_embd.weight has 320 rows"),
    "tail as number": (put("attention.indexer.kpool_select_tail", files.U32, 1), "true or false"),
    "draft elsewhere": (put("block_count", files.U32, 9), "the draft block is block 4"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_we_cannot_compute_is_refused_by_key(name: str, tmp_path: Path) -> None:
    edit, phrase = REFUSED[name]
    text = refused(tmp_path, edit)
    assert phrase in text
    assert "glm5next." in text


OPTIONAL = {
    "attention.key_length",
    "attention.value_length",
    "attention.layer_norm_epsilon",
    "rope.dimension_count",
    "attention.indexer.kpool",
    "leading_dense_block_count",
    "expert_shared_count",
    "expert_gating_func",
    "expert_group_count",
    "expert_group_used_count",
    "nextn_predict_layers",
    "vocab_size",
    "expert_weights_norm",
    "swiglu_clamp_exp",
    "swiglu_clamp_shexp",
    "expert_shared_feed_forward_length",
    "attention.kv_lora_rank",
}


def test_every_key_is_either_required_or_has_a_stated_default(tmp_path: Path) -> None:
    content = files.tiny_model(Tiny())
    keys = [
        key.removeprefix("glm5next.") for key in content.metadata if key.startswith("glm5next.")
    ]
    assert len(keys) > 30
    for key in keys:
        if key in OPTIONAL:
            read(tmp_path, drop(key))
        else:
            assert f"the key glm5next.{key} is missing" in refused(tmp_path, drop(key))


def test_tokens_may_be_fewer_than_rows_but_not_more(tmp_path: Path) -> None:
    def tokens(count: int) -> Callable[[Content], None]:
        words = Value(files.STRING, [f"w{i}" for i in range(count)])
        return lambda content: content.metadata.update({"tokenizer.ggml.tokens": words})

    assert "20 rows of the vocabulary have no token" in notes(tmp_path, tokens(300))
    assert "321 tokens are listed" in refused(tmp_path, tokens(321))
