"""The project's own tests in the Windows Python, against the installed wheel."""

from __future__ import annotations

import re

import pytest

from tests.windows.conftest import Windows

AREAS = (
    "conformance", "cpu", "quant", "gguf", "model", "ops", "text", "engine", "cli", "settings",
    "house",
)  # fmt: skip
NEEDS_A_COMPILER = (
    "tests/cpu/test_products_build.py",
    "tests/quant/test_elementary.py::test_the_c_header_gives_the_same_bits",
)
# Windows refuses to rewrite a file while an exception still holds its mapping.
REWRITES_A_MAPPED_FILE = (
    "tests/gguf/test_damage.py::test_the_undamaged_file_opens",
    "tests/gguf/test_reader.py::test_last_padding_may_be_missing",
    "tests/gguf/test_sets.py::test_any_shard_and_the_folder_open_the_same_set",
    "tests/gguf/test_sets.py::test_shards_of_two_splits_are_refused_with_both_totals",
    "tests/gguf/test_sets.py::test_a_second_file_of_another_split_is_refused",
    "tests/model/test_load_geometry.py::test_every_key_is_either_required_or_has_a_stated_default",
    "tests/model/test_load_inventory.py::test_every_needed_tensor_is_asked_for_by_name",
    "tests/model/test_load_inventory.py::test_a_draft_only_file_is_called_one",
)
# Links, named pipes, permissions, letter case, /proc, folders named by variables, paths without a
# drive, pipes with a number: wine or Windows has them not.
MEANS_POSIX = (
    "tests/gguf/test_fuzz_headers.py::test_memory_that_is_used_is_seen",
    "tests/gguf/test_sets.py::test_a_folder_may_hold_other_files_too",
    "tests/gguf/test_sets.py::test_an_absent_path_and_a_dead_link_are_refused",
    "tests/gguf/test_sets.py::test_a_set_of_links_opens_by_the_names_of_the_links",
    "tests/gguf/test_sets.py::test_a_pipe_is_refused_without_waiting_for_it",
    "tests/gguf/test_sets.py::test_a_file_without_read_permission_is_refused",
    "tests/engine/test_trace_files.py::test_saving_through_a_link_keeps_the_link_and_leaves_no_other_file",
    "tests/cli/test_chat.py::test_shown_thinking_is_named_where_it_shares_the_place_of_the_answer",
    "tests/cli/test_request_options.py::test_every_flag_arrives",
    "tests/cli/test_app.py::test_a_mistake_of_ours_is_named_and_its_traceback_kept",
    "tests/settings/test_settings.py::test_a_settings_file_behind_a_link_stays_behind_it",
)
LEFT_OUT = (*NEEDS_A_COMPILER, *REWRITES_A_MAPPED_FILE, *MEANS_POSIX)


def last_lines(windows: Windows, *arguments: str) -> tuple[int, str]:
    left_out = [f"--deselect={test}" for test in LEFT_OUT]
    options = ("-q", "--tb=short", "-m", "not long", *left_out)
    done = windows.python("-m", "pytest", *options, *arguments)
    said = done.stdout.decode("utf-8", "replace")
    print(said[-8000:])
    return done.returncode, said


@pytest.mark.parametrize("area", AREAS)
def test_the_tests_of_an_area_pass(windows: Windows, area: str) -> None:
    code, said = last_lines(windows, f"tests/{area}")
    assert code == 0, said[-4000:]
    assert re.search(r"\d+ passed", said)


def test_processes_and_open_files_behave(windows: Windows) -> None:
    code, said = last_lines(windows, "tests/windows/inside_worker.py")
    assert code == 0, said[-4000:]


def test_a_failing_test_is_noticed(windows: Windows) -> None:
    code, said = last_lines(windows, "tests/house", "--timeout", "0.000001")
    assert code != 0, said[-4000:]
