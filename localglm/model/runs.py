"""Runs of ops that a device may do in one go; each function here is the definition of its run."""

from __future__ import annotations

from collections.abc import Sequence

from localglm.backends.base import Buffer, Device, Matrix

Triple = tuple[Buffer, Buffer, Buffer]


def products(dev: Device, weights: Sequence[Matrix], x: Buffer) -> tuple[Buffer, ...]:
    """Multiply the same x [t, in] by several weights -> one [t, out] each."""
    fused = dev.fused.products
    if fused is not None:
        return fused(weights, x)
    return tuple(dev.matmul(weight, x) for weight in weights)


def gated_ffn(
    dev: Device, gate: Matrix, up: Matrix, down: Matrix, x: Buffer, limit: float | None
) -> Buffer:
    """down(silu(min(gate x, limit)) * clip(up x, -limit, limit)): x [t, d] -> [t, d]."""
    fused = dev.fused.gated_ffn
    if fused is not None:
        return fused(gate, up, down, x, limit)
    return dev.matmul(down, dev.swiglu(dev.matmul(gate, x), dev.matmul(up, x), limit))


def conv_scan(
    dev: Device, raw: Triple, filters: Triple, windows: Triple, decay: Buffer, beta: Buffer,
    state: Buffer,
) -> Buffer:  # fmt: skip
    """Convolve raw query, key and value [t, h*k] and advance the scan -> [t, h, v]."""
    fused = dev.fused.conv_scan
    if fused is not None:
        return fused(raw, filters, windows, decay, beta, state)
    return conv_scan_parts(dev, raw, filters, windows, decay, beta, state)[3]


def conv_scan_parts(
    dev: Device, raw: Triple, filters: Triple, windows: Triple, decay: Buffer, beta: Buffer,
    state: Buffer,
) -> tuple[Buffer, Buffer, Buffer, Buffer]:  # fmt: skip
    """Return convolved query, key and value [t, h, k] and the output of the scan, op by op."""
    heads, key_width, value_width = state.shape
    q, k, v = (
        dev.reshape(dev.short_conv(r, f, w), (beta.shape[0], heads, width))
        for r, f, w, width in zip(
            raw, filters, windows, (key_width, key_width, value_width), strict=True
        )
    )
    return q, k, v, dev.kda_scan(q, k, v, decay, beta, state)
