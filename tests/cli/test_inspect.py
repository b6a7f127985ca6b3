"""``localglm inspect``: the facts of a file, without its tensor data."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from localglm.backends.cpu.device import CpuDevice
from localglm.cli.inspect import command
from localglm.errors import ModelFileError
from localglm.gguf import ModelFile, open_model
from localglm.model.load import load_model
from tests import gguf_files as files
from tests import oracle_archive as oracle
from tests.gguf_files import Content, Tensor, Tiny, Value, write_model


def run(path: Path, *options: str, code: int = 0) -> str:
    result = CliRunner().invoke(command, [str(path), *options], catch_exceptions=False)
    assert result.exit_code == code
    return result.output


def data(path: Path, code: int = 0) -> dict:
    return json.loads(run(path, "--json", code=code))


def test_json_counts_every_tensor_and_byte_once() -> None:
    about = data(oracle.model_path("tiny-kquants"))
    with open_model(oracle.model_path("tiny-kquants")) as file:
        infos = file.tensors.values()
        assert sum(row["tensors"] for row in about["storage"]) == len(infos)
        assert sum(row["nbytes"] for row in about["storage"]) == sum(i.nbytes for i in infos)
        total = about["parameters"]["trunk"] + about["parameters"]["draft"]
        assert total == sum(i.values for i in infos)
    assert len({row["type"] for row in about["storage"]}) == 22


def test_json_has_the_facts_a_program_needs(tmp_path: Path) -> None:
    about = data(write_model(tmp_path))
    assert about["schema_version"] == 1
    assert about["command"] == "inspect"
    assert about["architecture"] == "glm5next"
    assert about["layers"] == {"trunk": 4, "linear": 3, "latent": 1, "dense": 1, "routed": 3}
    assert about["geometry"]["layers"][2]["attention"] == "mla"
    assert about["drafts"] is True
    assert about["missing"] == []
    assert about["tokenizer"]["pre"] == "glm4"
    assert about["tokenizer"]["tokens"] == 320


@pytest.mark.parametrize(
    ("key", "value", "named"),
    [
        ("tokenizer.ggml.pre", "klingon", "klingon"),
        ("tokenizer.ggml.model", "none", "no vocabulary"),
        ("tokenizer.chat_template", "{% if %}", "does not parse"),
    ],
)
def test_a_file_that_cannot_answer_is_said_to_and_exits_with_3(
    tmp_path: Path, key: str, value: str, named: str
) -> None:
    def edit(content: Content) -> None:
        content.metadata[key] = Value(files.STRING, value)

    path = write_model(tmp_path, edit=edit)
    result = CliRunner().invoke(command, [str(path), "--json"])
    assert result.exit_code == 3
    assert named in " ".join(json.loads(result.output)["problems"])
    text = CliRunner().invoke(command, [str(path)])
    assert "problem: " in text.output


def test_a_token_uses_only_its_experts(tmp_path: Path) -> None:
    few = data(write_model(tmp_path, Tiny(used=1), name="few"))["parameters"]
    many = data(write_model(tmp_path, Tiny(used=6), name="many"))["parameters"]
    expert = 3 * 64 * 32
    assert many["per_token"] - few["per_token"] == 3 * 5 * expert
    assert many["trunk"] == few["trunk"]
    assert many["per_token"] == many["trunk"] - 320 * 64


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    path = write_model(tmp_path, Tiny(draft=False, tokenizer=False))
    assert data(path, 3)["missing"] == ["draft block", "tokenizer", "chat template"]
    text = run(path, code=3)
    assert "draft block    no" in text
    assert "missing        draft block, tokenizer, chat template" in text


def test_text_from_the_file_cannot_move_the_cursor(tmp_path: Path) -> None:
    def edit(content: Content) -> None:
        content.metadata["general.name"] = Value(files.STRING, "evil\x1b[2J\nname")
        content.tensors.append(Tensor("v.\x1b[2J", (1,), 0, bytes(4)))

    text = run(write_model(tmp_path, edit=edit))
    assert "\x1b" not in text
    assert "note: 1 vision tensors are ignored" in text


def test_no_tensor_data_is_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def touched(_file: ModelFile, name: str) -> np.ndarray:
        raise AssertionError(name)

    path = write_model(tmp_path)
    monkeypatch.setattr(ModelFile, "data", touched)
    assert "latent attention" in run(path)
    with open_model(path) as file, pytest.raises(AssertionError):
        load_model(file, CpuDevice(1))


def test_a_bad_file_is_one_error(tmp_path: Path) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(b"no model")
    with pytest.raises(ModelFileError, match="cut short"):
        run(path)
