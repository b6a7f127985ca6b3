"""Where each routed expert lies: three byte ranges of the files of a set, never assembled.

Knows the survey of a file, nothing of reading it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from localglm.errors import ModelFileError, ShapeError
from localglm.model.inventory import Survey

PAGE = 4096
"""What direct reads are aligned to: at least the block of every drive, and the page of memory."""

PARTS = ("gate", "up", "down")


@dataclass(frozen=True, slots=True)
class ByteRange:
    """``nbytes`` bytes at ``offset`` of the file of ``shard``."""

    shard: int
    offset: int
    nbytes: int

    @property
    def first_page(self) -> int:
        """Offset of the aligned range around it."""
        return self.offset // PAGE * PAGE

    @property
    def page_bytes(self) -> int:
        """Length of the aligned range around it."""
        return -(-(self.offset + self.nbytes) // PAGE) * PAGE - self.first_page

    @property
    def room(self) -> int:
        """Aligned memory that holds as many bytes, wherever in a page they begin."""
        return -(-self.nbytes // PAGE) * PAGE + PAGE


@dataclass(frozen=True, slots=True)
class LayerRanges:
    """The experts of one layer: of each part the range of expert 0; the others follow it."""

    layer: int
    experts: int
    first: tuple[ByteRange, ByteRange, ByteRange]

    def of(self, expert: int) -> tuple[ByteRange, ByteRange, ByteRange]:
        """Return where gate, up and down of ``expert`` lie.

        Raises: ShapeError when the layer has no such expert.
        """
        if not 0 <= expert < self.experts:
            raise ShapeError(f"layer {self.layer} has {self.experts} experts, no expert {expert}")
        gate, up, down = (
            ByteRange(part.shard, part.offset + expert * part.nbytes, part.nbytes)
            for part in self.first
        )
        return gate, up, down

    @property
    def slot_bytes(self) -> int:
        """Aligned memory that holds any expert of the layer, wherever its parts begin."""
        return sum(part.room for part in self.first)


@dataclass(frozen=True, slots=True)
class ExpertLayout:
    """Every routed expert of a set. ``used`` is how many of a layer one token runs."""

    layers: Mapping[int, LayerRanges]
    used: int

    @property
    def slot_bytes(self) -> int:
        """Aligned memory that holds the largest expert."""
        return max(layer.slot_bytes for layer in self.layers.values())

    @property
    def total_bytes(self) -> int:
        """Bytes of all experts."""
        return sum(
            layer.experts * part.nbytes for layer in self.layers.values() for part in layer.first
        )

    @property
    def least_slots(self) -> int:
        """Slots without which nothing is read while a layer is computed: two layers' worth."""
        return 2 * self.used


def expert_layout(found: Survey) -> ExpertLayout:
    """Find the routed experts of a surveyed file, the draft block's included.

    Raises: ModelFileError when the model has none.
    """
    geometry = found.geometry
    layers = (*geometry.layers, *(() if geometry.draft is None else (geometry.draft,)))
    ranges = {layer.index: _layer_ranges(found, layer.index) for layer in layers if not layer.dense}
    if not ranges:
        raise ModelFileError(
            "the model has no routed experts",
            why="every one of its layers is dense",
            try_="keep the whole model in memory",
        )
    return ExpertLayout(MappingProxyType(ranges), geometry.moe.used)


def _layer_ranges(found: Survey, layer: int) -> LayerRanges:
    experts = found.geometry.moe.experts
    infos = [found.tensors[f"blk.{layer}.ffn_{part}_exps.weight"].info for part in PARTS]
    gate, up, down = (ByteRange(info.shard, info.offset, info.nbytes // experts) for info in infos)
    return LayerRanges(layer, experts, (gate, up, down))


def expert_bytes(found: Survey) -> int:
    """Return the bytes of all routed experts of the file."""
    return expert_layout(found).total_bytes


def minimum_memory(found: Survey) -> int:
    """Return the least budget of a streamed home: one layer lent while the next is read."""
    layout = expert_layout(found)
    return layout.least_slots * layout.slot_bytes
