"""Which blocks of a file are the trunk and which is the draft block: the tensor list decides.

Counts in the metadata and the blocks that are there disagree in real files: tools drop the draft
block and leave the count, or the reverse.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from localglm.errors import ModelFileError
from localglm.gguf import ModelFile
from localglm.model.keys import Keys

DRAFT_MARK = "nextn.eh_proj.weight"


@dataclass(frozen=True, slots=True)
class Blocks:
    """Trunk layers, the index of the draft block or None, and the file's own count of blocks."""

    trunk: int
    draft: int | None
    listed: int

    @property
    def array_lengths(self) -> frozenset[int]:
        """Lengths that a per-layer array may have."""
        return frozenset({self.trunk, self.trunk + 1, self.listed})


def find_blocks(file: ModelFile, keys: Keys) -> Blocks:
    """Split the blocks of a file into trunk and draft block.

    Raises: ModelFileError for a draft-only file and for counts that no reading of the tensors
    supports.
    """
    listed = keys.count("block_count", high=max(1, len(file.tensors)))
    drafting = keys.optional_count("nextn_predict_layers", low=0, high=listed) or 0
    indices = _block_indices(file.tensors)
    marked = sorted(i for i in indices if f"blk.{i}.{DRAFT_MARK}" in file.tensors)
    if marked:
        return _with_draft(file, keys, Blocks(marked[0], marked[0], listed), drafting, marked)
    return _without_draft(file, keys, listed, drafting)


def _block_indices(tensors: Mapping[str, object]) -> frozenset[int]:
    parts = (name.split(".", 2) for name in tensors if name.startswith("blk."))
    return frozenset(
        int(part[1])
        for part in parts
        if len(part) == 3 and part[1].isascii() and part[1].isdigit() and len(part[1]) < 10
    )


def _with_draft(
    file: ModelFile, keys: Keys, blocks: Blocks, drafting: int, marked: list[int]
) -> Blocks:
    draft = marked[0]
    if draft == 0 or not any(i < draft for i in _block_indices(file.tensors)):
        raise ModelFileError(
            f"{file.paths[0].name} holds a draft block only",
            why=f"block {draft} is there, but the model it drafts for is not",
            try_="use a file that holds the whole model",
        )
    if draft not in (blocks.listed - drafting, blocks.listed - 1, blocks.listed):
        raise keys.refuse(
            "block_count", f"it is {blocks.listed}, but the draft block is block {draft}"
        )
    if drafting == 0:
        keys.note(f"nextn_predict_layers is 0 or absent, but block {draft} is a draft block: used")
    if len(marked) > 1:
        keys.note(f"{len(marked)} draft blocks are there: only block {draft} is used")
    return blocks


def _without_draft(file: ModelFile, keys: Keys, listed: int, drafting: int) -> Blocks:
    last_is_trunk = f"blk.{listed - 1}.hc_attn_fn.weight" in file.tensors
    trunk = listed if last_is_trunk else listed - drafting
    if trunk < 1:
        raise keys.refuse(
            "block_count",
            f"it is {listed}, and {drafting} of them are draft blocks: no trunk is left",
        )
    if drafting:
        missing = f"blk.{trunk}.{DRAFT_MARK}"
        keys.note(f"nextn_predict_layers is {drafting}, but {missing} is missing: no drafting")
    return Blocks(trunk, None, listed)
