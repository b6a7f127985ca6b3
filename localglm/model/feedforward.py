"""The feed-forward sublayers: dense SwiGLU, and routed experts beside a shared one."""

from __future__ import annotations

from localglm.backends.base import Buffer
from localglm.model.attention import Pass
from localglm.model.geometry import LayerGeometry
from localglm.model.runs import gated_ffn
from localglm.model.weights import FfnWeights, MoeWeights


def feed_forward(
    run: Pass, name: str, layer: LayerGeometry, w: FfnWeights | MoeWeights, x: Buffer,
    following: FfnWeights | MoeWeights | None = None,
) -> Buffer:  # fmt: skip
    """Run the feed-forward of one block: x [t, d], normalised -> [t, d].

    ``following`` is that of the next block: where experts are read from a disk, its router is asked
    ahead of time which ones it may want.
    """
    if isinstance(w, FfnWeights):
        return swiglu(run, w, x, layer.shared_limit)
    dev, moe = run.device, run.geometry.moe
    logits = dev.matmul(w.router, x)
    run.probe.record(f"{name}router_logits", logits)
    forced = run.probe.replacement(f"{name}router_ids", run.first, run.count)
    routing = dev.route(logits, w.bias, moe.used, moe.scale, forced)
    run.probe.record(f"{name}router_ids", routing.ids)
    run.probe.record(f"{name}router_w", routing.weights)
    dev.expect_experts(w.experts, routing.ids, certain=True)
    if isinstance(following, MoeWeights) and not following.experts.resident:
        guess = dev.route(dev.matmul(following.router, x), following.bias, moe.used, moe.scale)
        dev.expect_experts(following.experts, guess.ids, certain=False)
    shared = swiglu(run, w.shared, x, layer.shared_limit)
    rows = dev.expert_ffn(w.experts, x, routing.ids, layer.expert_limit)
    return dev.combine(rows, routing.weights, shared)


def swiglu(run: Pass, w: FfnWeights, x: Buffer, limit: float | None) -> Buffer:
    """down(silu(min(gate x, limit)) * clip(up x, -limit, limit)): x [t, d] -> [t, d]."""
    return gated_ffn(run.device, w.gate, w.up, w.down, x, limit)
