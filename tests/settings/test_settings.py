"""Settings: order of origins, refusals, and files that keep their comments."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localglm.errors import SettingsError, UsageError
from localglm.settings.load import load
from localglm.settings.schema import SPECS, Settings, parse_value, shown, spec_of
from localglm.settings.store import set_value, unset_value


def test_nothing_set_gives_the_defaults(tmp_path: Path) -> None:
    loaded = load(tmp_path / "none.toml", {})
    assert loaded.settings == Settings()
    assert set(loaded.origins.values()) == {"default"}


def test_flags_beat_variables_beat_the_file(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[engine]\nthreads = 2\nchunk = 32\ncontext = 100\n")
    variables = {"LOCALGLM_ENGINE_CHUNK": "64", "LOCALGLM_ENGINE_CONTEXT": "200"}
    loaded = load(file, variables, {"engine.context": 300, "engine.backend": None})
    assert (loaded.settings.threads, loaded.settings.chunk) == (2, 64)
    assert loaded.settings.context == 300
    assert loaded.origins["engine.threads"] == f"file {file}"
    assert loaded.origins["engine.chunk"] == "variable LOCALGLM_ENGINE_CHUNK"
    assert loaded.origins["engine.context"] == "command line"
    assert loaded.origins["engine.backend"] == "default"


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ("[engine]\nthread = 2\n", "did you mean engine.threads"),
        ("[engine]\nthreads = 0\n", "auto, or 1 to 1024"),
        ("[engine]\nthreads = true\n", "auto, or 1 to 1024"),
        ("[sampling]\ntemperature = nan\n", "0 to 10"),
        ("[thinking]\nlevel = 'medium'\n", "off, low, high or max"),
        ("colour = 1\n", "'colour' where a section is expected"),
        ("engine = 3\n", "'engine' where a section is expected"),
        ("[[engine]]\nthreads = 2\n", "'engine' where a section is expected"),
        ("'engine.threads' = 2\n", "'engine.threads' where a section is expected"),
        ("[foo]\n", "'foo' where a section is expected"),
        ("[engine]\nthreads = 2024-01-01\n", "cannot be 2024-01-01"),
        ("[engine\n", "cannot be read"),
    ],
)
def test_a_bad_file_is_refused_by_name(tmp_path: Path, content: str, names: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(content)
    with pytest.raises(SettingsError) as caught:
        load(file, {})
    assert names in "\n".join(caught.value.lines())
    assert caught.value.exit_code == 4


def test_a_bad_flag_is_a_usage_error_that_names_the_flag(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--top-p cannot be '0'") as caught:
        load(tmp_path / "x", {}, {"sampling.top_p": "0"})
    assert caught.value.exit_code == 2
    assert caught.value.try_ == "--top-p 0.95"


def test_a_variable_that_sets_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="LOCALGLM_THREADS sets nothing"):
        load(tmp_path / "x", {"LOCALGLM_THREADS": "2"})


def test_setting_a_value_keeps_comments_and_unsetting_restores_the_default(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "config.toml"
    set_value(file, "engine.threads", "3")
    file.write_text("# mine\n" + file.read_text())
    set_value(file, "engine.chunk", "17")
    assert file.read_text().startswith("# mine\n")
    assert load(file, {}).settings.threads == 3
    assert unset_value(file, "engine.threads")
    assert not unset_value(file, "engine.threads")
    assert load(file, {}).settings == Settings(chunk=17)


def test_a_file_of_a_windows_editor_loads_and_can_be_changed(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(b"\xef\xbb\xbf[sampling]\r\ntop_p = 0.5 # mine\r\n")
    set_value(file, "sampling.seed", "7")
    loaded = load(file, {})
    assert (loaded.settings.top_p, loaded.settings.seed) == (0.5, 7)
    assert "# mine" in file.read_text()


def test_a_file_with_a_value_in_place_of_a_section_is_not_written(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    for content in ("engine = 3\n", "[[engine]]\nx = 1\n"):
        file.write_text(content)
        for change in (lambda: set_value(file, "engine.chunk", "7"),
                       lambda: unset_value(file, "engine.chunk")):  # fmt: skip
            with pytest.raises(SettingsError, match="where a section is expected"):
                change()
        assert file.read_text() == content


def test_what_is_no_regular_file_is_not_read() -> None:
    with pytest.raises(SettingsError) as caught:
        load(Path("/dev/zero"), {})
    assert "no regular file" in caught.value.why


def test_a_settings_file_behind_a_link_stays_behind_it(tmp_path: Path) -> None:
    real, link = tmp_path / "real.toml", tmp_path / "link.toml"
    link.symlink_to(real)
    set_value(link, "engine.chunk", "17")
    assert link.is_symlink()
    assert load(real, {}).settings.chunk == 17
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.toml", "real.toml"]


def test_a_bad_value_leaves_the_file_alone(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    set_value(file, "engine.chunk", "17")
    before = file.read_bytes()
    with pytest.raises(SettingsError):
        set_value(file, "engine.chunk", "many")
    assert file.read_bytes() == before


@pytest.mark.parametrize("spec", SPECS, ids=lambda s: s.key)
def test_every_default_survives_being_shown_and_parsed(spec) -> None:
    default = getattr(Settings(), spec.field)
    assert parse_value(spec, shown(spec, default), "test") == default
    assert parse_value(spec, str(shown(spec, default)), "test") == default


@given(st.binary(max_size=200))
def test_any_bytes_in_the_file_load_or_are_refused(tmp_path_factory, data: bytes) -> None:
    file = tmp_path_factory.mktemp("fuzz") / "config.toml"
    file.write_bytes(data)
    try:
        load(file, {})
    except SettingsError as err:
        assert err.why


@given(st.sampled_from([s.key for s in SPECS]), st.text(max_size=12))
def test_any_text_as_a_value_is_typed_or_refused(key: str, text: str) -> None:
    spec = spec_of(key)
    try:
        value = parse_value(spec, text, "test")
    except SettingsError as err:
        assert spec.accepts in err.why
    else:
        assert parse_value(spec, shown(spec, value), "test") == value
