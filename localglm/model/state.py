"""What a model remembers of one sequence, and how it is saved, restored and taken back.

Rows of latents and pool keys depend only on the tokens before them, so a snapshot copies only what
is overwritten (KDA matrices, windows, open pools) and is valid as long as the row caches still hold
the rows of its tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

from localglm.backends.base import Buffer, Device
from localglm.errors import RequestError
from localglm.model.geometry import AttentionKind, Geometry
from localglm.model.journal import Journal
from localglm.model.layer_state import KdaState, MlaState, OpenPool


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A point in a sequence: its tokens, and copies of everything later tokens overwrite."""

    tokens: tuple[int, ...]
    kda: tuple[KdaState | None, ...]
    open_pools: tuple[OpenPool | None, ...]

    @property
    def position(self) -> int:
        """Tokens the snapshot has seen."""
        return len(self.tokens)


LayerState = KdaState | MlaState


class State:
    """The memory of one sequence on one device. Made by ``Model.new_state``."""

    def __init__(
        self, device: Device, geometry: Geometry, layers: tuple[LayerState, ...], context: int
    ) -> None:
        self.device = device
        self.geometry = geometry
        self.layers = layers
        self.context = context
        self.journal: Journal | None = None
        self._tokens: list[int] = []
        self._row_tokens: list[int] = []
        self._is_broken = False

    @classmethod
    def new(cls, device: Device, geometry: Geometry, *, context: int, cache_type: str) -> State:
        """Return the state before the first token."""
        layers: list[LayerState] = [
            KdaState.new(device, geometry)
            if layer.attention is AttentionKind.KDA
            else MlaState.new(device, geometry, cache_type, context)
            for layer in geometry.layers
        ]
        return cls(device, geometry, tuple(layers), context)

    # -- position ------------------------------------------------------------------------------
    @property
    def position(self) -> int:
        """Tokens seen; also the position of the next token."""
        return len(self._tokens)

    @property
    def tokens(self) -> tuple[int, ...]:
        """The tokens seen, in order."""
        return tuple(self._tokens)

    @property
    def nbytes(self) -> int:
        """Bytes held on the device."""
        total = 0
        for layer in self.layers:
            if isinstance(layer, KdaState):
                total += sum(4 * _size(b) for b in layer.buffers())
            else:
                total += layer.latents.nbytes + layer.pools.nbytes
        return total

    def begin(self, ids: list[int]) -> None:
        """Check that ``ids`` can follow and mark the state as being written.

        Raises: RequestError when the context is full or an earlier pass failed half-way.
        """
        if self._is_broken:
            raise RequestError(
                "the sequence cannot go on",
                why="an earlier forward pass on it failed half-way",
                try_="restore a snapshot, or start the sequence again",
            )
        if self.position + len(ids) > self.context:
            raise RequestError(
                f"{self.position + len(ids)} tokens do not fit a context of {self.context}",
                why=f"{self.position} tokens are there and {len(ids)} were to be added",
                try_="open the model with a larger context, or shorten the conversation",
            )
        self._is_broken = True

    def commit(self, ids: list[int]) -> None:
        """Record that ``ids`` were written completely."""
        del self._row_tokens[self.position :]
        self._tokens.extend(ids)
        self._row_tokens.extend(ids)
        self._is_broken = False

    # -- snapshots -----------------------------------------------------------------------------
    def snapshot(self) -> Snapshot:
        """Return this point of the sequence; restoring it later costs one copy."""
        self._refuse_if_broken()
        kda = tuple(x.saved(self.device) if isinstance(x, KdaState) else None for x in self.layers)
        pools = tuple(x.open_pool if isinstance(x, MlaState) else None for x in self.layers)
        return Snapshot(self.tokens, kda, pools)

    def can_restore(self, snapshot: Snapshot) -> bool:
        """Whether the row caches still hold the rows of the snapshot's tokens."""
        return tuple(self._row_tokens[: snapshot.position]) == snapshot.tokens

    def restore(self, snapshot: Snapshot) -> None:
        """Go back (or forward) to a snapshot.

        Raises: RequestError when other tokens have since overwritten its rows.
        """
        if not self.can_restore(snapshot):
            raise RequestError(
                f"the snapshot at token {snapshot.position} is no longer valid",
                why="the sequence went on with other tokens from an earlier point",
                try_="read the prompt again from an older snapshot or from the start",
            )
        self._load(snapshot)
        self.journal = None

    def _load(self, snapshot: Snapshot) -> None:
        for layer, kda, pool in zip(self.layers, snapshot.kda, snapshot.open_pools, strict=True):
            if isinstance(layer, KdaState):
                assert kda is not None
                layer.load(self.device, kda)
            else:
                assert pool is not None
                layer.truncate(snapshot.position, pool)
        self._tokens = list(snapshot.tokens)
        self._is_broken = False

    def fork(self) -> State:
        """Return an independent copy of the whole sequence."""
        self._refuse_if_broken()
        layers = tuple(
            x.saved(self.device) if isinstance(x, KdaState) else x.fork() for x in self.layers
        )
        out = State(self.device, self.geometry, layers, self.context)
        out._tokens = list(self._tokens)
        out._row_tokens = list(self._tokens)
        return out

    # -- taking back the last tokens -----------------------------------------------------------
    def mark(self) -> None:
        """Keep what is needed to take back any number of the tokens that follow."""
        self.journal = Journal(self.snapshot())

    def rollback(self, count: int) -> None:
        """Take back the last ``count`` tokens; the state is what it was before them, bit for bit.

        The kept tokens since ``mark`` run through the recurrences again from recorded inputs.
        Raises: RequestError when more tokens are taken back than were added since ``mark``.
        """
        self._refuse_if_broken()
        journal = self.journal
        added = 0 if journal is None else self.position - journal.base.position
        if journal is None or not 0 <= count <= added:
            raise RequestError(
                f"{count} tokens cannot be taken back",
                why=f"{added} tokens were added since the last mark",
                try_="mark the state before adding tokens that may be taken back",
            )
        if count == 0:
            return
        kept = self._tokens[journal.base.position : self.position - count]
        self._load(journal.base)
        journal.replay(self.device, self.layers, len(kept))
        self._tokens.extend(kept)

    def _refuse_if_broken(self) -> None:
        if self._is_broken:
            raise RequestError(
                "the sequence cannot be saved",
                why="a forward pass on it failed half-way",
                try_="restore a snapshot, or start the sequence again",
            )


def _size(buffer: Buffer) -> int:
    n = 1
    for axis in buffer.shape:
        n *= axis
    return n
