"""What one layer remembers of a sequence.

KDA: a matrix per head and the last raw rows of the convolution. MLA: latent rows and pool keys,
which only ever grow, and the key and gate rows of the pool that is still open.
"""

from __future__ import annotations

from dataclasses import dataclass

from localglm.backends.base import Buffer, Device
from localglm.model.geometry import Geometry

_FIRST_CAPACITY = 256


@dataclass(frozen=True, slots=True)
class KdaState:
    """Windows [taps - 1, channels], oldest row first, and matrix [h, k, v]; all start at zero."""

    window_query: Buffer
    window_key: Buffer
    window_value: Buffer
    matrix: Buffer

    @classmethod
    def new(cls, device: Device, geometry: Geometry) -> KdaState:
        """Return the state before the first token."""
        kda = geometry.kda
        window = (kda.taps - 1, kda.channels)
        return cls(
            device.alloc(window),
            device.alloc(window),
            device.alloc(window),
            device.alloc((kda.heads, kda.head_width, kda.head_width)),
        )

    @property
    def windows(self) -> tuple[Buffer, Buffer, Buffer]:
        """Windows of query, key and value."""
        return self.window_query, self.window_key, self.window_value

    def buffers(self) -> tuple[Buffer, ...]:
        """Return every buffer, in a fixed order."""
        return (self.window_query, self.window_key, self.window_value, self.matrix)

    def saved(self, device: Device) -> KdaState:
        """Return an independent copy."""
        return KdaState(*(_clone(device, b) for b in self.buffers()))

    def load(self, device: Device, saved: KdaState) -> None:
        """Overwrite this state with a copy made by ``saved``."""
        for mine, theirs in zip(self.buffers(), saved.buffers(), strict=True):
            device.copy(mine, theirs)


@dataclass(slots=True)
class RowCache:
    """Rows [capacity, width] that grow by doubling; ``count`` of them are valid."""

    device: Device
    width: int
    dtype: str
    limit: int
    rows: Buffer
    count: int = 0

    @classmethod
    def new(cls, device: Device, width: int, dtype: str, limit: int) -> RowCache:
        """Return an empty cache of at most ``limit`` rows."""
        first = device.alloc((min(_FIRST_CAPACITY, limit), width), dtype)
        return cls(device, width, dtype, limit, first)

    def append(self, new: Buffer) -> None:
        """Add rows at the end, growing when they do not fit."""
        end = self.count + new.shape[0]
        if end > self.rows.shape[0]:
            self._grow(end)
        self.device.store_rows(self.rows, new, self.count)
        self.count = end

    def _grow(self, needed: int) -> None:
        capacity = min(max(needed, 2 * self.rows.shape[0]), self.limit)
        bigger = self.device.alloc((capacity, self.width), self.dtype)
        if self.count:
            kept = self.device.rows(self.rows, 0, self.count)
            self.device.copy(self.device.rows(bigger, 0, self.count), kept)
        self.rows = bigger

    def fork(self) -> RowCache:
        """Return an independent copy."""
        clone = _clone(self.device, self.rows, self.dtype)
        return RowCache(self.device, self.width, self.dtype, self.limit, clone, self.count)

    @property
    def nbytes(self) -> int:
        """Bytes held, the unused capacity included."""
        return self.rows.shape[0] * self.width * (2 if self.dtype == "f16" else 4)


@dataclass(frozen=True, slots=True)
class OpenPool:
    """Key and gate rows [open, i] of the pool that has not seen its last token.

    None when there are none.
    """

    keys: Buffer | None
    gates: Buffer | None

    @property
    def count(self) -> int:
        """Tokens in the open pool."""
        return 0 if self.keys is None else self.keys.shape[0]


@dataclass(slots=True)
class MlaState:
    """Latent rows and pool keys in the cache type, and the open pool in float32."""

    device: Device
    pool: int
    latents: RowCache
    pools: RowCache
    open_pool: OpenPool

    @classmethod
    def new(cls, device: Device, geometry: Geometry, cache_type: str, context: int) -> MlaState:
        """Return the state before the first token."""
        ix = geometry.indexer
        return cls(
            device,
            ix.pool,
            RowCache.new(device, geometry.mla.latent, cache_type, context),
            RowCache.new(device, ix.width, cache_type, max(1, context // ix.pool)),
            OpenPool(None, None),
        )

    def append_indexer(self, keys: Buffer, gates: Buffer, slot_bias: Buffer) -> None:
        """Add indexer rows [t, i] of new tokens; every pool they complete gets its key."""
        all_keys = self._joined(self.open_pool.keys, keys)
        all_gates = self._joined(self.open_pool.gates, gates)
        total = all_keys.shape[0]
        complete = total // self.pool * self.pool
        if complete:
            dev = self.device
            done = dev.pool_keys(
                dev.rows(all_keys, 0, complete), dev.rows(all_gates, 0, complete), slot_bias
            )
            self.pools.append(done)
        self.open_pool = self._tail(all_keys, all_gates, complete, total)

    def _joined(self, before: Buffer | None, new: Buffer) -> Buffer:
        if before is None:
            return new
        dev = self.device
        out = dev.alloc((before.shape[0] + new.shape[0], new.shape[1]))
        dev.store_rows(out, before, 0)
        dev.store_rows(out, new, before.shape[0])
        return out

    def _tail(self, keys: Buffer, gates: Buffer, complete: int, total: int) -> OpenPool:
        if complete == total:
            return OpenPool(None, None)
        dev = self.device
        return OpenPool(
            _clone(dev, dev.rows(keys, complete, total)),
            _clone(dev, dev.rows(gates, complete, total)),
        )

    def truncate(self, position: int, open_pool: OpenPool) -> None:
        """Forget rows from ``position`` on; ``open_pool`` is the open pool at that position."""
        self.latents.count = position
        self.pools.count = position // self.pool
        self.open_pool = open_pool

    def fork(self) -> MlaState:
        """Return an independent copy; open-pool buffers are never written and may be shared."""
        return MlaState(
            self.device, self.pool, self.latents.fork(), self.pools.fork(), self.open_pool
        )


def _clone(device: Device, buffer: Buffer, dtype: str = "f32") -> Buffer:
    out = device.alloc(buffer.shape, dtype)
    device.copy(out, buffer)
    return out
