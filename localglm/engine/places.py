"""Names of intermediates in words, for a person who does not know the probe's short names."""

from __future__ import annotations

import re

_PARTS = {
    "attn_norm": "normed input of the attention",
    "attn_out": "output of the attention",
    "ffn_norm": "normed input of the feed-forward part",
    "ffn_out": "output of the feed-forward part",
    "streams_mid": "residual streams after the attention",
    "streams_out": "residual streams at the end of the layer",
    "router_logits": "scores of the expert router",
    "router_ids": "choice of experts",
    "router_w": "weights of the chosen experts",
    "q_resid": "compressed query",
    "idx_selected": "choice of cells to attend",
    "input": "input",
    "out": "output",
    "h": "hidden state",
}
_FAMILIES = {
    "hc_attn": "mixing of the residual streams before the attention",
    "hc_ffn": "mixing of the residual streams before the feed-forward part",
    "kda": "linear attention",
    "idx": "indexer of the latent attention",
}
_LAYER = re.compile(r"l(\d+)\.(.+)")


def in_words(name: str) -> str:
    """Return where an intermediate lies, with its short name in brackets."""
    if name == "hidden":
        return "the last hidden state"
    found = _LAYER.fullmatch(name)
    where, part = (f"layer {found[1]}", found[2]) if found else _outside(name)
    words = _PARTS.get(part)
    if words is None:
        words = next((w for start, w in _FAMILIES.items() if part.startswith(f"{start}_")), None)
    return f"{where} ({name})" if words is None else f"{where}, {words} ({name})"


def _outside(name: str) -> tuple[str, str]:
    family, dot, part = name.partition(".")
    return ("the draft block", part) if dot and family == "mtp" else ("the model", name)
