"""The whole-set check: what is missing, wrong, optional or ignored."""

from __future__ import annotations

from pathlib import Path

import pytest

from localglm.errors import ModelFileError
from localglm.gguf import open_model
from localglm.model.inventory import Survey, survey
from tests import gguf_files as files
from tests import oracle_archive as oracle
from tests.gguf_files import Content, Edit, Tensor, Tiny, Value, write_model

I32_ID = 26
UNKNOWN_ID = 200


def check(folder: Path, edit: Edit | None = None, spec: Tiny | None = None) -> Survey:
    with open_model(write_model(folder, spec, edit=edit)) as file:
        return survey(file)


def refused(folder: Path, edit: Edit, spec: Tiny | None = None) -> str:
    with pytest.raises(ModelFileError) as caught:
        check(folder, edit, spec)
    return " ".join(caught.value.lines())


def without(*prefixes: str) -> Edit:
    return lambda content: content.drop(*prefixes)


def retyped(name: str, type_id: int) -> Edit:
    return lambda content: setattr(content.tensor(name), "type_id", type_id)


def reshaped(name: str, *ne: int) -> Edit:
    return lambda content: setattr(content.tensor(name), "ne", ne)


def added(*tensors: Tensor) -> Edit:
    return lambda content: content.tensors.extend(tensors)


@pytest.mark.parametrize("name", oracle.NAMES)
def test_a_fixture_passes_with_every_tensor_used(name: str) -> None:
    with open_model(oracle.model_path(name)) as file:
        found = survey(file)
        assert found.notes == ()
        assert found.ignored == ()
        assert len(found.tensors) == len(file.tensors)


def test_every_needed_tensor_is_asked_for_by_name(tmp_path: Path) -> None:
    spec = Tiny(layers="KM", draft=False, width=32, experts=2)
    names = [t.name for t in files.tiny_model(spec).tensors]
    assert len(names) == 60
    for name in names:
        if name != "output.weight":
            assert f"lacks a tensor: {name}" in refused(tmp_path, without(name), spec)


def test_many_missing_tensors_make_one_short_message(tmp_path: Path) -> None:
    text = refused(tmp_path, without("blk.1."))
    assert "lacks 31 tensors: blk.1.attn_norm.weight" in text
    assert "and 27 more" in text


@pytest.mark.parametrize(
    ("name", "ne", "want"),
    [
        ("blk.0.attn_q.weight", (32, 128), "[64, 64]"),
        ("blk.2.attn_k_b.weight", (32, 2, 32), "[32, 32, 2]"),
        ("blk.1.ffn_gate_exps.weight", (64, 6, 32), "[64, 32, 6]"),
        ("output_norm.weight", (8, 8), "[64]"),
        ("blk.4.nextn.eh_proj.weight", (64, 128), "[128, 64]"),
    ],
)
def test_a_wrong_shape_is_refused_with_both_shapes(
    tmp_path: Path, name: str, ne: tuple[int, ...], want: str
) -> None:
    text = refused(tmp_path, reshaped(name, *ne))
    assert f"{name} has the shape {list(ne)}" in text
    assert f"asks for {want}" in text


def test_ones_in_a_shape_do_not_matter(tmp_path: Path) -> None:
    check(tmp_path, spec=Tiny(trailing_ones=True))
    check(tmp_path, reshaped("blk.0.ssm_conv1d_q.weight", 4, 64))
    check(tmp_path, reshaped("blk.0.ssm_conv1d_q.weight", 4, 1, 64, 1))
    assert "has the shape" in refused(tmp_path, reshaped("blk.0.ssm_conv1d_q.weight", 64, 4))


@pytest.mark.parametrize(("type_id", "name"), [(I32_ID, "I32"), (UNKNOWN_ID, "type 200")])
def test_a_type_we_do_not_compute_is_refused_on_a_needed_tensor(
    tmp_path: Path, type_id: int, name: str
) -> None:
    text = refused(tmp_path, retyped("blk.1.ffn_down_exps.weight", type_id))
    assert f"blk.1.ffn_down_exps.weight is stored as {name}" in text
    assert "accepted types: F32 F16 BF16 Q4_0" in text
    assert "IQ1_M" in text


def test_gate_up_and_down_may_differ_in_type_from_layer_to_layer(tmp_path: Path) -> None:
    types = {
        "1.ffn_gate_exps.weight": "IQ2_XXS",
        "1.ffn_up_exps.weight": "Q4_K",
        "1.ffn_down_exps.weight": "IQ3_XXS",
        "2.ffn_gate_exps.weight": "Q8_0",
        "attn_k_b.weight": "Q5_1",
    }
    spec = Tiny(width=256, expert_width=256, dense_width=256, storage="Q6_K", storage_of=types)
    found = check(tmp_path, spec=spec)
    stored = {name: item.info.type_name for name, item in found.tensors.items()}
    assert stored["blk.1.ffn_gate_exps.weight"] == "IQ2_XXS"
    assert stored["blk.1.ffn_up_exps.weight"] == "Q4_K"
    assert stored["blk.1.ffn_down_exps.weight"] == "IQ3_XXS"
    assert stored["blk.2.ffn_gate_exps.weight"] == "Q8_0"
    assert found.notes == ()


def test_vision_and_other_extra_tensors_are_ignored_and_counted(tmp_path: Path) -> None:
    extra = [Tensor(f"v.blk.{i}.weight", (32,), UNKNOWN_ID, bytes(77)) for i in range(7)]
    extra.append(Tensor("rope_freqs\x1b[1m.weight", (32,), 0, bytes(128)))
    found = check(tmp_path, added(*extra))
    said = " | ".join(found.notes)
    assert "7 vision tensors are ignored" in said
    assert "1 other tensors are ignored: 'rope_freqs\\x1b[1m.weight'" in said
    assert len(found.ignored) == 8


def no_draft(found: Survey, phrase: str) -> None:
    assert found.geometry.draft is None
    assert not any(name.startswith("blk.4.") for name in found.tensors)
    assert phrase in " | ".join(found.notes)
    assert len(found.geometry.layers) == 4


def test_a_file_without_its_draft_block_runs_without_drafting(tmp_path: Path) -> None:
    assert check(tmp_path).geometry.draft is not None
    found = check(tmp_path, without("blk.4."))
    no_draft(found, "nextn_predict_layers is 1, but blk.4.nextn.eh_proj.weight is missing")


def test_a_count_that_kept_the_draft_block_out_is_understood(tmp_path: Path) -> None:
    def edit(content: Content) -> None:
        content.drop("blk.4.")
        content.metadata["glm5next.block_count"] = Value(files.U32, 4)

    no_draft(check(tmp_path, edit), "no drafting")
    assert check(tmp_path, spec=Tiny(draft=False)).notes == ()


@pytest.mark.parametrize("part", ["nextn.hnorm.weight", "ffn_down_exps.weight", "attn_q_a.weight"])
def test_an_incomplete_draft_block_turns_drafting_off(tmp_path: Path, part: str) -> None:
    found = check(tmp_path, without(f"blk.4.{part}"))
    no_draft(found, f"the draft block lacks a tensor: blk.4.{part}: no drafting")


def test_a_draft_block_in_a_foreign_type_turns_drafting_off(tmp_path: Path) -> None:
    found = check(tmp_path, retyped("blk.4.nextn.eh_proj.weight", I32_ID))
    no_draft(found, "blk.4.nextn.eh_proj.weight is stored as I32")


def test_a_draft_only_file_is_called_one(tmp_path: Path) -> None:
    only = without("blk.0.", "blk.1.", "blk.2.", "blk.3.")
    assert "holds a draft block only" in refused(tmp_path, only)

    def bare(content: Content) -> None:
        only(content)
        content.drop("token_embd", "output")

    assert "holds a draft block only" in refused(tmp_path, bare)


def test_several_draft_blocks_use_the_first(tmp_path: Path) -> None:
    def edit(content: Content) -> None:
        content.metadata["glm5next.block_count"] = Value(files.U32, 6)
        content.metadata["glm5next.nextn_predict_layers"] = Value(files.U32, 2)
        for key in ("attention.head_count_kv", "swiglu_clamp_exp", "swiglu_clamp_shexp"):
            content.metadata[f"glm5next.{key}"].value.append(1)
        content.tensors += [
            Tensor(t.name.replace("blk.4.", "blk.5."), t.ne, t.type_id, t.data)
            for t in content.tensors
            if t.name.startswith("blk.4.")
        ]

    found = check(tmp_path, edit)
    assert found.geometry.draft is not None
    assert found.geometry.draft.index == 4
    assert any("2 draft blocks are there" in note for note in found.notes)


def test_a_missing_output_head_is_the_embedding_table(tmp_path: Path) -> None:
    found = check(tmp_path, without("output.weight"))
    assert any("the embedding table serves as output head" in note for note in found.notes)
    assert "lacks a tensor: output_norm.weight" in refused(tmp_path, without("output_norm.weight"))


def test_the_older_names_of_the_compressor_are_understood(tmp_path: Path) -> None:
    def edit(content: Content) -> None:
        for tensor in content.tensors:
            tensor.name = tensor.name.replace("indexer_compressor_", "indexer.kpool_")

    found = check(tmp_path, edit)
    item = found.tensors["blk.2.indexer_compressor_ape.weight"]
    assert item.info.name == "blk.2.indexer.kpool_ape.weight"
    assert found.ignored == ()


def test_the_kind_in_the_metadata_decides_which_tensors_are_needed(tmp_path: Path) -> None:
    def edit(content: Content) -> None:
        content.metadata["glm5next.attention.head_count_kv"] = Value(files.I32, [0, 1, 1, 0, 1])

    assert "blk.1.attn_q_a.weight" in refused(tmp_path, edit)
