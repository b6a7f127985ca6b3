"""The memory plan of one model file: measures what can be measured, computes the rest."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from localglm import paths
from localglm.engine.devices import default_threads
from localglm.engine.disk_rate import Drive, estimate, look_at_drive
from localglm.engine.memory_limits import ceilings, read_memory
from localglm.engine.needs import context_in_force
from localglm.engine.planner import Base, Weights, Wish, make_plan
from localglm.engine.rehearsal import Scratch, rehearse
from localglm.experts.layout import expert_layout
from localglm.model.roles import Role

if TYPE_CHECKING:
    from localglm.backends.base import Device
    from localglm.engine.events import DiskRate, MemoryPlan
    from localglm.engine.protocol import OpenModel
    from localglm.gguf import ModelFile
    from localglm.model.inventory import Survey

EXPERT_ROLES = (Role.EXPERT_GATE_UP, Role.EXPERT_DOWN)


@dataclass(frozen=True)
class Accountant:
    """Everything a plan is made from."""

    file: ModelFile
    found: Survey
    device: Device
    request: OpenModel

    @property
    def wish(self) -> Wish:
        """Return what the conversation is to be."""
        request, limit = self.request, self.found.geometry.context_length
        context = context_in_force(request.context, limit)
        return Wish(context, request.chunk, request.cache_type)

    @cached_property
    def drive(self) -> Drive:
        """How the drive of the largest file likes to be read."""
        largest = max(self.file.paths, key=lambda path: path.stat().st_size)
        return look_at_drive(largest, paths.data_folder())

    def plan(self, base: Base) -> MemoryPlan:
        """Make the plan.

        Raises: MemoryShortError when the model and the conversation cannot fit.
        """
        weights = Weights.of(self.found, expert_layout(self.found))
        limits = ceilings(read_memory(), self.request.memory)
        return make_plan(
            self.found, weights, self.wish, base, self._scratch(), limits, self._estimate
        )

    def _scratch(self) -> Scratch:
        """Return what a chunk needs; only the processor's own work is counted here."""
        from localglm.backends.cpu.device import CpuDevice  # noqa: PLC0415 - loads the library

        if not isinstance(self.device, CpuDevice):
            return Scratch(0, 0)
        wish = self.wish
        return rehearse(
            self.file, self.found, self.device,
            context=wish.context, chunk=wish.chunk, cache_type=wish.cache_type,
        )  # fmt: skip

    def _estimate(self, missing: float) -> DiskRate:
        return estimate(
            self.drive,
            expert_bytes=token_bytes(self.found, only_experts=True),
            token_bytes=token_bytes(self.found),
            missing=missing,
            threads=self.request.threads or default_threads(),
        )


def token_bytes(found: Survey, *, only_experts: bool = False) -> int:
    """Return the weight bytes one generated token reads.

    One row of the embedding, the used share of the experts, the draft block left out, all the rest.
    """
    geometry, total = found.geometry, 0
    draft = "" if geometry.draft is None else f"blk.{geometry.draft.index}."
    for item in found.tensors.values():
        size, role = item.info.nbytes, item.expected.role
        if draft and item.expected.name.startswith(draft):
            continue
        if role in EXPERT_ROLES:
            total += size * geometry.moe.used // geometry.moe.experts
        elif only_experts:
            continue
        elif role is Role.EMBEDDING:
            is_head = "output.weight" not in found.tensors
            total += size // geometry.vocabulary + (size if is_head else 0)
        else:
            total += size
    return total
