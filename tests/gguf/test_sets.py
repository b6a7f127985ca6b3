"""From a path to the files of one model: shards, folders, links, and what must be refused."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from localglm.errors import ModelFileError
from localglm.gguf import open_model
from tests import gguf_files as files
from tests import oracle_archive as oracle
from tests.gguf_files import Content, Tiny, Value, write_model

SMALL = Tiny(layers="KM", width=32, experts=2, draft=False)


def refused(path: Path) -> str:
    with pytest.raises(ModelFileError) as caught:
        open_model(path)
    return " ".join(caught.value.lines())


def names(path: Path) -> list[str]:
    with open_model(path) as file:
        return [part.name for part in file.paths]


def test_any_shard_and_the_folder_open_the_same_set(tmp_path: Path) -> None:
    first = write_model(tmp_path, SMALL, shards=3)
    whole = write_model(tmp_path / "..", SMALL, name=f"{tmp_path.name}-whole")
    paths = sorted(tmp_path.glob("*.gguf"))
    with open_model(whole) as one:
        for path in (tmp_path, *paths):
            with open_model(path) as file:
                assert file.paths == tuple(paths)
                assert file.paths[0] == first
                assert list(file.tensors) == list(one.tensors)
                for name in file.tensors:
                    assert (file.data(name) == one.data(name)).all()
    whole.unlink()


@pytest.mark.parametrize("digits", [4, 5])
@pytest.mark.parametrize("first_number", [0, 1])
@pytest.mark.parametrize("first_name", [0, 1])
@pytest.mark.parametrize("metadata_shard", [True, False])
def test_numbers_may_count_from_0_or_1_and_have_4_or_5_digits(
    tmp_path: Path, digits: int, first_number: int, first_name: int, metadata_shard: bool
) -> None:
    write_model(
        tmp_path,
        SMALL,
        shards=3,
        digits=digits,
        first_number=first_number,
        first_name=first_name,
        metadata_shard=metadata_shard,
    )
    assert len(names(tmp_path)) == 3


def test_only_the_first_shard_needs_the_metadata_and_it_may_be_swapped(tmp_path: Path) -> None:
    here, there = tmp_path / "a", tmp_path / "b"
    here.mkdir()
    there.mkdir()
    write_model(here, SMALL, shards=3)
    other = write_model(there, Tiny(**{**vars_of(SMALL), "arch": "glm5-next"}), shards=3)
    shutil.copy(other, here / other.name)
    with open_model(here) as file:
        assert file.arch == "glm5-next"
        assert file.get("block_count") == 2


def vars_of(spec: Tiny) -> dict[str, object]:
    return {name: getattr(spec, name) for name in spec.__dataclass_fields__}


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_a_missing_shard_is_named(tmp_path: Path, lost: int) -> None:
    write_model(tmp_path, SMALL, shards=3)
    missing = tmp_path / f"tiny-0000{lost}-of-00003.gguf"
    missing.unlink()
    for path in (tmp_path, *tmp_path.glob("*.gguf")):
        text = refused(path)
        assert missing.name in text
        assert "2 of 3 files" in text


def test_a_set_of_very_many_files_is_refused_in_one_line(tmp_path: Path) -> None:
    path = write_model(tmp_path, SMALL).rename(tmp_path / "x-000000001-of-999999999.gguf")
    text = refused(path)
    assert "1 of 999999999" in text
    assert "999999986 more" in text
    assert len(text) < 1000


def test_shards_of_two_splits_are_refused_with_both_totals(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    write_model(tmp_path, SMALL, shards=2, metadata_shard=False)
    write_model(other, SMALL, shards=3, metadata_shard=False)
    (tmp_path / "tiny-00002-of-00002.gguf").unlink()
    stranger = other / "tiny-00002-of-00003.gguf"
    shutil.copy(stranger, tmp_path / "tiny-00002-of-00002.gguf")
    text = refused(tmp_path)
    assert "set of 2 files" in text
    assert "set of 3" in text
    assert "tiny-00001-of-00002.gguf and tiny-00002-of-00002.gguf" in text

    (tmp_path / "tiny-00002-of-00002.gguf").unlink()
    shutil.copy(stranger, tmp_path / stranger.name)
    text = refused(tmp_path / "tiny-00001-of-00002.gguf")
    assert "tiny-00002-of-00002.gguf" in text
    assert "tiny-00002-of-00003.gguf (1 of 3 files), of another split" in text
    assert "2 models" in refused(tmp_path)


def shard_edit(tmp_path: Path, spec: Tiny, number: int, edit: Callable[[Content], None]) -> Path:
    """Write a set of two, and one of its files again with other content."""
    whole = files.tiny_model(spec)
    half = len(whole.tensors) // 2
    for i, tensors in enumerate((whole.tensors[:half], whole.tensors[half:])):
        split = {
            "split.no": Value(files.U16, i),
            "split.count": Value(files.U16, 2),
            "split.tensors.count": Value(files.I32, len(whole.tensors)),
        }
        content = Content({**(whole.metadata if i == 0 else {}), **split}, list(tensors))
        if i == number:
            edit(content)
        (tmp_path / f"tiny-0000{i + 1}-of-00002.gguf").write_bytes(files.pack(content))
    return tmp_path


def set_split(key: str, value: object) -> Callable[[Content], None]:
    return lambda content: content.metadata.update({f"split.{key}": Value(files.I32, value)})


def repeat_tensor(content: Content) -> None:
    content.tensors.append(files.Tensor("token_embd.weight", (1,), 0, bytes(4)))


@pytest.mark.parametrize(
    ("edit", "phrase"),
    [
        (set_split("tensors.count", 77), "the other to a set of 77"),
        (set_split("count", 3), "the other to a set of 3"),
        (set_split("no", 2), "out of order"),
        (set_split("no", 0), "out of order"),
        (set_split("count", -1), "split.count is not a count"),
        (lambda content: content.tensors.pop(), "should hold"),
        (repeat_tensor, "two files hold the tensor 'token_embd.weight'"),
        (
            lambda content: content.metadata.update(
                {"general.architecture": Value(files.STRING, "glm5-next")}
            ),
            "different models",
        ),
    ],
)
def test_a_second_file_of_another_split_is_refused(
    tmp_path: Path, edit: Callable[[Content], None], phrase: str
) -> None:
    assert phrase in refused(shard_edit(tmp_path, SMALL, 1, edit))
    assert len(names(shard_edit(tmp_path, SMALL, 1, lambda _: None))) == 2


def test_swapped_shards_are_noticed(tmp_path: Path) -> None:
    write_model(tmp_path, SMALL, shards=3, metadata_shard=False)
    one, two, three = sorted(tmp_path.glob("*.gguf"))
    spare = tmp_path / "spare"
    two.rename(spare)
    three.rename(two)
    spare.rename(three)
    assert "out of order" in refused(one)


def test_a_lone_renamed_shard_asks_for_its_name(tmp_path: Path) -> None:
    path = write_model(tmp_path, SMALL, shards=3)
    text = refused(path.rename(tmp_path / "model.gguf"))
    assert "one shard of a set of 3 files" in text
    assert "-00001-of-00003.gguf" in text


def test_a_shard_with_a_wrong_total_in_its_name_is_refused(tmp_path: Path) -> None:
    write_model(tmp_path, SMALL, shards=3)
    (tmp_path / "tiny-00003-of-00003.gguf").unlink()
    for number in (1, 2):
        old = tmp_path / f"tiny-0000{number}-of-00003.gguf"
        old.rename(tmp_path / f"tiny-0000{number}-of-00002.gguf")
    assert "belongs to a set of 3 files" in refused(tmp_path)


def test_the_same_shard_twice_is_refused(tmp_path: Path) -> None:
    write_model(tmp_path, SMALL, shards=2)
    shutil.copy(tmp_path / "tiny-00002-of-00002.gguf", tmp_path / "tiny-0002-of-00002.gguf")
    assert "the same shard" in refused(tmp_path)


def test_a_folder_of_several_models_lists_them(tmp_path: Path) -> None:
    write_model(tmp_path, SMALL, name="one")
    path = write_model(tmp_path, SMALL, name="two", shards=3)
    text = refused(tmp_path)
    assert "2 models" in text
    assert "one.gguf" in text
    assert "two-00001-of-00003.gguf (3 of 3 files)" in text
    assert names(path) == [f"two-0000{i}-of-00003.gguf" for i in (1, 2, 3)]


def test_a_folder_may_hold_other_files_too(tmp_path: Path) -> None:
    write_model(tmp_path, SMALL, name="Model").rename(tmp_path / "Model.GGUF")
    write_model(tmp_path, SMALL, name="mmproj-F16")
    (tmp_path / "._Model.gguf").write_bytes(b"resource fork")
    (tmp_path / "README.md").write_text("text")
    assert names(tmp_path) == ["Model.GGUF"]


def test_an_empty_folder_points_to_the_folders_below(tmp_path: Path) -> None:
    assert "no .gguf model" in refused(tmp_path)
    below = tmp_path / "Q4"
    below.mkdir()
    write_model(below, SMALL)
    assert "Q4" in refused(tmp_path)
    assert names(below) == ["tiny.gguf"]


def test_an_absent_path_and_a_dead_link_are_refused(tmp_path: Path) -> None:
    assert "No such file" in refused(tmp_path / "absent.gguf")
    link = tmp_path / "link.gguf"
    link.symlink_to(tmp_path / "absent.gguf")
    assert "the link leads nowhere" in refused(link)
    assert "Not a directory" in refused(write_model(tmp_path, SMALL) / "x.gguf")


def test_a_set_of_links_opens_by_the_names_of_the_links(tmp_path: Path) -> None:
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshot"
    blobs.mkdir()
    snapshot.mkdir()
    write_model(blobs, SMALL, shards=3)
    for number, path in enumerate(sorted(blobs.glob("*.gguf"))):
        blob = path.rename(blobs / f"{number:064x}")
        (snapshot / path.name).symlink_to(blob)
    assert len(names(snapshot)) == 3
    assert len(names(snapshot / "tiny-00002-of-00003.gguf")) == 3


def test_a_pipe_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.gguf"
    os.mkfifo(pipe)
    assert "not a regular file" in refused(pipe)
    assert "not a regular file" in refused(tmp_path)


def test_a_file_without_read_permission_is_refused() -> None:
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    path = write_model(folder, SMALL)
    assert names(path) == [path.name]
    path.chmod(0)
    was = os.geteuid()
    try:
        if was == 0:
            os.seteuid(65534)
        assert "Permission denied" in refused(path)
    finally:
        os.seteuid(was)
        shutil.rmtree(folder)


def test_a_read_only_folder_opens_and_stays_as_it_was(tmp_path: Path) -> None:
    write_model(tmp_path, SMALL, shards=3)
    before = {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in tmp_path.iterdir()}
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        assert len(names(tmp_path)) == 3
    finally:
        tmp_path.chmod(0o755)
    assert {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in tmp_path.iterdir()} == before


def test_the_sharded_fixture_opens_from_its_last_shard() -> None:
    path = oracle.FOLDER / "tiny-upstream-00003-of-00003.gguf"
    with open_model(path) as file:
        assert len(file.tensors) == 151
        assert file.metadata["split.count"] == 3
