"""The contract between the model and a device.

A ``Device`` holds memory and runs the op table. The graph sees ``Buffer`` (float32, int32 or
float16 arrays on the device) and ``Matrix`` (a weight in its storage type) as opaque handles. Every
op is a method here, is defined in ``ops.reference`` and listed with its test cases in
``ops.registry``.

Ops return new buffers unless the docstring says "in place". Axis letters: see ``model.geometry``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from localglm.arrays import U8, AnyArray
from localglm.quant.types import StorageType


@dataclass(frozen=True, slots=True)
class StoredMatrix:
    """A weight as the file holds it: ``data`` is its bytes, rows contiguous, last axis innermost.

    Shapes: ``shape`` in numpy order, (out, in), or (stack, out, in) per head or expert.
    """

    name: str
    shape: tuple[int, ...]
    type: StorageType
    data: U8


@dataclass(frozen=True, slots=True)
class StoredExperts:
    """The routed experts of one layer as the file holds them: three stacks (expert, out, in)."""

    layer: int
    gate: StoredMatrix
    up: StoredMatrix
    down: StoredMatrix


@dataclass(frozen=True, slots=True)
class LentExpert:
    """One expert in memory: the bytes of its three matrices, as the file holds them."""

    expert: int
    gate: U8
    up: U8
    down: U8


class ExpertHome(Protocol):
    """Lends experts that are not all in memory. Used by one thread."""

    def expect(self, layer: int, experts: Sequence[int], *, certain: bool) -> None:
        """Start to bring experts near and return at once; may do nothing.

        ``certain``: they will be borrowed; otherwise it is a guess, which never delays what is
        certain.
        """

    def lend(self, layer: int, experts: Sequence[int]) -> Iterator[Sequence[LentExpert]]:
        """Yield each of ``experts`` (distinct) once, some at a time, as they arrive.

        What was yielded stays in place until the next is asked for or the iterator is closed.
        Raises: ModelFileError when the bytes cannot be read.
        """


@runtime_checkable
class Buffer(Protocol):
    """An array on the device."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Axis lengths, outermost first."""


class Matrix(Protocol):
    """A weight on the device, in its storage type."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(out, in) or (stack, out, in)."""

    @property
    def type(self) -> StorageType:
        """Storage type of every row."""


class Experts(Protocol):
    """The routed experts of one layer on the device."""

    @property
    def resident(self) -> bool:
        """Whether all are in memory, so that nothing is gained by saying which come next."""


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """Bytes a device holds, by purpose; ``mapped`` file pages cost nothing until they are read."""

    weights: int
    buffers: int
    mapped: int


@dataclass(frozen=True, slots=True)
class HyperMix:
    """Result of ``hyper_pre``: input [t, d], post [t, s], comb [t, source s, destination s]."""

    input: Buffer
    post: Buffer
    comb: Buffer


@dataclass(frozen=True, slots=True)
class Cells:
    """Cells each query attends: index [t, c] int32, the first ``count[t]`` valid and ascending."""

    index: Buffer
    count: Buffer


@dataclass(frozen=True, slots=True)
class Routing:
    """Experts chosen per token, best first: ids [t, x] int32 and weights [t, x] float32."""

    ids: Buffer
    weights: Buffer


@dataclass(frozen=True, slots=True)
class HyperParams:
    """Constants of a hyper-connection site; ``epsilon`` is mHC's, ``norm_epsilon`` RMSNorm's."""

    streams: int
    rounds: int
    epsilon: float
    norm_epsilon: float


class Ops(Protocol):
    """The op table. Floats are float32 on every device but the reference, which uses float64."""

    # -- products -----------------------------------------------------------------------------
    def embed(self, table: Matrix, ids: Sequence[int]) -> Buffer:
        """Decode rows ``ids`` of ``table`` [n, d] -> [t, d]."""

    def matmul(self, weight: Matrix, x: Buffer) -> Buffer:
        """Multiply x [t, in] by weight [out, in] -> [t, out].

        Activations are quantised as the weight's type demands.
        """

    def head_matmul(self, weight: Matrix, x: Buffer) -> Buffer:
        """Multiply per head: x [t, h, in] by weight [h, out, in] -> [t, h, out]."""

    def expert_ffn(self, experts: Experts, x: Buffer, ids: Buffer, limit: float | None) -> Buffer:
        """Run the chosen experts, rows kept apart: x [t, d], ids [t, x] -> [t, x, d].

        Each row is down(swiglu(gate x, up x, limit)).
        """

    # -- element-wise and norms ---------------------------------------------------------------
    def swiglu(self, gate: Buffer, up: Buffer, limit: float | None) -> Buffer:
        """silu(min(gate, limit)) * clip(up, -limit, limit), element by element."""

    def rms_norm(self, x: Buffer, weight: Buffer, epsilon: float) -> Buffer:
        """weight * x / sqrt(mean(x^2) + epsilon) over the last axis."""

    def layer_norm(self, x: Buffer, weight: Buffer, bias: Buffer, epsilon: float) -> Buffer:
        """weight * (x - mean) / sqrt(var + epsilon) + bias over the last axis, biased variance."""

    def add(self, x: Buffer, y: Buffer) -> Buffer:
        """x + y, same shapes."""

    def concat(self, x: Buffer, y: Buffer) -> Buffer:
        """Join [t, a] and [t, b] on the last axis -> [t, a + b]."""

    # -- hyper-connections --------------------------------------------------------------------
    def spread(self, x: Buffer, streams: int) -> Buffer:
        """Copy x [t, d] into every stream -> [t, s, d]."""

    def hyper_pre(
        self, streams: Buffer, fn: Matrix, base: Buffer, scale: Buffer, params: HyperParams
    ) -> HyperMix:
        """Collapse streams [t, s, d] for one site and compute how its output is written back."""

    def hyper_post(self, y: Buffer, streams: Buffer, post: Buffer, comb: Buffer) -> Buffer:
        """Write y [t, d] back into streams [t, s, d] -> [t, s, d].

        Math: X'[j] = post[j] * y + sum_s comb[s, j] * X[s]
        """

    def stream_mean(self, streams: Buffer) -> Buffer:
        """Unweighted mean over the streams: [t, s, d] -> [t, d]."""

    # -- linear attention (KDA) ---------------------------------------------------------------
    def short_conv(self, raw: Buffer, filters: Buffer, window: Buffer) -> Buffer:
        """silu of the causal depthwise convolution of raw [t, c] with filters [c, taps] -> [t, c].

        ``window`` [taps - 1, c], oldest row first, holds the raw rows before the chunk; in place.
        """

    def kda_decay(self, raw: Buffer, bias: Buffer, rate: Buffer, lower_bound: float) -> Buffer:
        """Log decay in (lower_bound, 0): raw [t, h*k], bias [h*k], rate [h] -> [t, h, k].

        Math: g = lower_bound * sigmoid(rate_h * (raw + bias))
        """

    def sigmoid(self, x: Buffer) -> Buffer:
        """Logistic function, element by element."""

    def kda_scan(
        self, query: Buffer, key: Buffer, value: Buffer, decay: Buffer, beta: Buffer, state: Buffer
    ) -> Buffer:
        """Run the gated delta rule token by token -> [t, h, v].

        query, key, value [t, h, k] as they leave the convolution: L2 normalisation with 1e-6 inside
        the root and the query scale 1/sqrt(k) happen here. decay [t, h, k] is log decay; beta
        [t, h]; state [h, k, v] in place.
        """

    def gated_norm(self, x: Buffer, weight: Buffer, gate: Buffer, epsilon: float) -> Buffer:
        """rms_norm(x; weight) * sigmoid(gate), last axis: x and gate [t, h, v], weight [v]."""

    # -- latent attention (MLA) with the pooled indexer ---------------------------------------
    def store_rows(self, cache: Buffer, rows: Buffer, start: int) -> None:
        """Write rows [t, c] into cache [capacity, c] from row ``start``, in the cache's type."""

    def pool_keys(self, keys: Buffer, gates: Buffer, slot_bias: Buffer) -> Buffer:
        """Compress complete pools: keys, gates [p * pool, i], slot_bias [pool, i] -> [p, i].

        Per channel, softmax over the slots of (gate + slot_bias) weighs the keys.
        """

    def indexer_scores(
        self, query: Buffer, head_weight: Buffer, pools: Buffer, first_position: int, pool: int
    ) -> Buffer:
        """Score pools: query [t, g, i], head_weight [t, g], pools [>= P, i] -> [t, P].

        Math: sum_g w_g * relu(q_g . pi_p) / sqrt(i * g) with P = (first_position + t) // pool.
        Pools not complete at a token's position score -inf.
        """

    def select_cells(
        self, scores: Buffer, first_position: int, pool: int, pools_kept: int, select_tail: bool
    ) -> Cells:
        """Choose the best pools per token (ties: lower pool) and the open pool's tokens."""

    def dense_cells(self, count: int, first_position: int) -> Cells:
        """Every cell up to itself for each of ``count`` tokens: dense attention."""

    def mla_attend(self, query: Buffer, latents: Buffer, cells: Cells, scale: float) -> Buffer:
        """Softmax attention in latent space: query [t, h, l], latents [cap, l] -> [t, h, l]."""

    # -- routing ------------------------------------------------------------------------------
    def route(
        self, logits: Buffer, bias: Buffer, used: int, scale: float, forced: AnyArray | None = None
    ) -> Routing:
        """Pick the ``used`` largest of P + bias with P = sigmoid(logits) (ties: lower expert).

        Math: w = scale * P / (sum of chosen P + 1e-20), P without the bias.
        ``forced`` [t, x] replaces the choice, not the weights.
        """

    def combine(self, rows: Buffer, weights: Buffer, shared: Buffer) -> Buffer:
        """Add rows [t, x, d] times weights [t, x] in rank order, then shared [t, d] -> [t, d]."""


class Products(Protocol):
    """``matmul`` of several weights with the same x [t, in] -> one [t, out] each."""

    def __call__(self, weights: Sequence[Matrix], x: Buffer) -> tuple[Buffer, ...]:
        """Return the products in the order of the weights."""


class GatedFfn(Protocol):
    """down(swiglu(gate x, up x, limit)): x [t, d] -> [t, d]."""

    def __call__(
        self, gate: Matrix, up: Matrix, down: Matrix, x: Buffer, limit: float | None
    ) -> Buffer:
        """Return the output of the down product."""


class ConvScan(Protocol):
    """``short_conv`` of query, key and value, then ``kda_scan``: raw rows [t, h*k] -> [t, h, v]."""

    def __call__(
        self, raw: tuple[Buffer, Buffer, Buffer], filters: tuple[Buffer, Buffer, Buffer],
        windows: tuple[Buffer, Buffer, Buffer], decay: Buffer, beta: Buffer, state: Buffer,
    ) -> Buffer:  # fmt: skip
        """Return the output of the scan; ``windows`` and ``state`` are updated in place."""


@dataclass(frozen=True, slots=True)
class FusedOps:
    """Runs of ops a device does in one go, None where it does them one by one.

    ``model.runs`` states each run; a fused op gives its bits.
    """

    products: Products | None = None
    gated_ffn: GatedFfn | None = None
    conv_scan: ConvScan | None = None


class Device(Ops, Protocol):
    """Memory of one device and the ops that run on it."""

    @property
    def name(self) -> str:
        """Backend name shown to the user."""

    @property
    def fused(self) -> FusedOps:
        """Runs of ops this device does in one go."""

    def matrix(self, stored: StoredMatrix) -> Matrix:
        """Make a weight available without changing its bytes."""

    def experts(self, stored: StoredExperts, home: ExpertHome | None = None) -> Experts:
        """Make a layer's experts available.

        With ``home`` their bytes are borrowed from there and ``stored`` only describes them.
        """

    def expect_experts(self, experts: Experts, ids: Buffer, *, certain: bool) -> None:
        """Say that experts ``ids`` will be asked for soon. Changes no result; may do nothing."""

    def upload(self, array: AnyArray) -> Buffer:
        """Copy a host array to the device (floats become the device's float type, ints int32)."""

    def alloc(self, shape: tuple[int, ...], dtype: str = "f32") -> Buffer:
        """Allocate zeros. ``dtype`` is "f32", "f16" or "i32"."""

    def download(self, buffer: Buffer) -> AnyArray:
        """Copy a buffer to the host; waits for it."""

    def reshape(self, buffer: Buffer, shape: tuple[int, ...]) -> Buffer:
        """Reinterpret a contiguous buffer with another shape, without a copy."""

    def rows(self, buffer: Buffer, start: int, stop: int) -> Buffer:
        """View rows [start, stop) of the first axis, without a copy."""

    def copy(self, target: Buffer, source: Buffer) -> None:
        """Overwrite ``target`` with ``source`` of the same shape and type. In place."""

    def is_finite(self, buffer: Buffer) -> bool:
        """Whether a float buffer holds neither an infinity nor a NaN; waits for it."""

    def sync(self) -> None:
        """Wait until everything queued has run."""

    def memory(self) -> MemoryReport:
        """Return the bytes held now."""

    def tidy(self) -> None:
        """Give back memory kept for later results; costs the next pass a little time."""

    def close(self) -> None:
        """Free everything; the device cannot be used afterwards."""
