"""The feed-forward sublayers: dense SwiGLU, and routed experts beside a shared one."""

from __future__ import annotations

from localglm.backends.base import Buffer
from localglm.model.attention import Pass
from localglm.model.geometry import LayerGeometry
from localglm.model.weights import FfnWeights, MoeWeights


def feed_forward(
    run: Pass, name: str, layer: LayerGeometry, w: FfnWeights | MoeWeights, x: Buffer
) -> Buffer:
    """Run the feed-forward of one block: x [t, d], normalised -> [t, d]."""
    if isinstance(w, FfnWeights):
        return swiglu(run, w, x, layer.shared_limit)
    dev, moe = run.device, run.geometry.moe
    logits = dev.matmul(w.router, x)
    run.probe.record(f"{name}router_logits", logits)
    forced = run.probe.replacement(f"{name}router_ids", run.first, run.count)
    routing = dev.route(logits, w.bias, moe.used, moe.scale, forced)
    run.probe.record(f"{name}router_ids", routing.ids)
    run.probe.record(f"{name}router_w", routing.weights)
    e = w.experts
    rows = dev.expert_ffn(e.gate, e.up, e.down, x, routing.ids, layer.expert_limit)
    return dev.combine(rows, routing.weights, swiglu(run, w.shared, x, layer.shared_limit))


def swiglu(run: Pass, w: FfnWeights, x: Buffer, limit: float | None) -> Buffer:
    """down(silu(min(gate x, limit)) * clip(up x, -limit, limit)): x [t, d] -> [t, d]."""
    dev = run.device
    return dev.matmul(w.down, dev.swiglu(dev.matmul(w.gate, x), dev.matmul(w.up, x), limit))
