"""Sizes as a person writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localglm.errors import SettingsError
from localglm.settings.load import load
from localglm.settings.schema import parse_value, shown, spec_of
from localglm.settings.sizes import parse_size, write_size


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [
        ("12GiB", 12 << 30),
        ("12 gib", 12 << 30),
        ("1.5 GiB", 3 << 29),
        ("12GB", 12 * 10**9),
        ("800 MiB", 800 << 20),
        ("7B", 7),
    ],
)
def test_a_number_with_its_unit_is_a_size(text: str, nbytes: int) -> None:
    assert parse_size(text) == nbytes


@pytest.mark.parametrize("text", ["12", "GiB", "-1GiB", "1e3MiB", "12 G", "12  GiB", "\u0661GiB"])
def test_anything_else_is_none(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the text is all it says
        parse_size(text)


@given(st.integers(1, 1 << 50))
def test_a_size_survives_being_written(nbytes: int) -> None:
    assert parse_size(write_size(nbytes)) == nbytes


def test_the_setting_takes_auto_or_a_size(tmp_path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[engine]\nmemory = '3GiB'\ncontext = 'auto'\n")
    settings = load(file, {"LOCALGLM_ENGINE_MEMORY": "512MiB"}).settings
    assert settings.memory == 512 << 20
    assert settings.context is None
    assert load(file, {}).settings.memory == 3 << 30
    spec = spec_of("engine.memory")
    assert (shown(spec, None), shown(spec, 3 << 29)) == ("auto", "1536MiB")
    for bad in (5, True, "5", "100KiB", "2000000TiB"):
        with pytest.raises(SettingsError, match=r"engine\.memory"):
            parse_value(spec, bad, "the test")
