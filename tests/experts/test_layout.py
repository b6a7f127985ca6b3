"""Byte ranges of experts: those of the mapped tensors, in one file or several."""

from __future__ import annotations

import pytest

from localglm.errors import ShapeError
from localglm.experts import expert_bytes, minimum_memory
from localglm.experts.layout import PAGE, PARTS, ByteRange, expert_layout
from localglm.gguf import open_model
from localglm.model.inventory import survey
from tests import oracle_archive as oracle


@pytest.mark.parametrize("name", ["tiny-upstream", "tiny-kquants"])
def test_the_ranges_hold_the_bytes_of_the_mapped_experts(name) -> None:
    file = open_model(oracle.model_path(name))
    found = survey(file)
    layout = expert_layout(found)
    contents = [path.read_bytes() for path in file.paths]
    total = 0
    for number, layer in layout.layers.items():
        for at, part in enumerate(PARTS):
            whole = file.data(found.tensors[f"blk.{number}.ffn_{part}_exps.weight"].info.name)
            ranges = [layer.of(expert)[at] for expert in range(layer.experts)]
            joined = b"".join(contents[r.shard][r.offset : r.offset + r.nbytes] for r in ranges)
            assert joined == whole.tobytes()
            total += len(joined)
    assert expert_bytes(found) == total
    geometry = found.geometry
    assert geometry.draft is not None
    assert geometry.draft.index in layout.layers
    assert minimum_memory(found) == 2 * geometry.moe.used * layout.slot_bytes
    with pytest.raises(ShapeError, match="no expert"):
        layer.of(layer.experts)
    file.close()


@pytest.mark.parametrize("offset", [0, 1, PAGE - 1, PAGE, 5 * PAGE + 17])
@pytest.mark.parametrize("nbytes", [1, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE])
def test_the_aligned_range_holds_the_range_and_fits_its_room(offset, nbytes) -> None:
    part = ByteRange(0, offset, nbytes)
    assert part.first_page % PAGE == part.page_bytes % PAGE == 0
    assert part.first_page <= offset < part.first_page + PAGE
    assert offset + nbytes <= part.first_page + part.page_bytes < offset + nbytes + PAGE
    assert part.page_bytes <= part.room
