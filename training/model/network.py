"""The whole network over a packed batch: trunk, head and draft block.

Blocks are plain functions of tensors, compiled once per kind by ``Compiled`` and used for every
layer of that kind. The attention core, whose shape depends on the row length, stays uncompiled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from training.model.config import ModelConfig
from training.model.experts import moe, swiglu
from training.model.hyper import hyper_post, hyper_pre
from training.model.kda import kda
from training.model.mla import Packing, attend, attention_terms
from training.model.norms import project, rms_norm
from training.model.parameters import Params


@dataclass(frozen=True, slots=True)
class Output:
    """Hidden rows after the output norm, draft rows, and what training watches.

    ``loads`` maps a layer to the tokens each expert got; divergence and recall per indexer.
    """

    hidden: Tensor
    draft_hidden: Tensor
    loads: dict[int, Tensor]
    divergences: list[Tensor]
    recalls: list[Tensor]


def _ffn_site(
    c: ModelConfig, p: Params, streams: Tensor, counted: Tensor, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    mixed, post, comb = hyper_pre(c, p, "ffn", streams)
    x = rms_norm(mixed, p["ffn_norm.weight"], c.norm_epsilon)
    if "ffn_gate.weight" in p:
        y, load = swiglu(c, p, "", x, dtype), x.new_zeros(0)
    else:
        y, load = moe(c, p, x, counted, dtype)
    return hyper_post(y, streams, post, comb), load


def kda_block(
    c: ModelConfig, p: Params, streams: Tensor, document: Tensor, counted: Tensor,
    dtype: torch.dtype,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Run a linear-attention block: streams [t, s, d] -> streams, expert loads."""
    mixed, post, comb = hyper_pre(c, p, "attn", streams)
    y = kda(c, p, rms_norm(mixed, p["attn_norm.weight"], c.norm_epsilon), document, dtype)
    return _ffn_site(c, p, hyper_post(y, streams, post, comb), counted, dtype)


def mla_front(
    c: ModelConfig, p: Params, streams: Tensor, dtype: torch.dtype
) -> tuple[Tensor, ...]:
    """First half of a latent-attention block: post, comb, then the attention terms."""
    mixed, post, comb = hyper_pre(c, p, "attn", streams)
    x = rms_norm(mixed, p["attn_norm.weight"], c.norm_epsilon)
    return post, comb, *attention_terms(c, p, x, dtype)


def mla_back(
    c: ModelConfig, p: Params, streams: Tensor, values: Tensor, mix: tuple[Tensor, Tensor],
    counted: Tensor, dtype: torch.dtype,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Second half: attended values [t, h * v] -> streams, expert loads."""
    y = project(values, p["attn_output.weight"], dtype)
    return _ffn_site(c, p, hyper_post(y, streams, *mix), counted, dtype)


def draft_front(
    c: ModelConfig, p: Params, embedded: Tensor, hidden: Tensor, dtype: torch.dtype
) -> tuple[Tensor, ...]:
    """First half of the draft block: x [t, d], then the attention terms."""
    halves = [
        rms_norm(embedded, p["nextn.enorm.weight"], c.norm_epsilon),
        rms_norm(hidden, p["nextn.hnorm.weight"], c.norm_epsilon),
    ]
    x = project(torch.cat(halves, -1), p["nextn.eh_proj.weight"], dtype).to(hidden.dtype)
    normed = rms_norm(x, p["attn_norm.weight"], c.norm_epsilon)
    return x, *attention_terms(c, p, normed, dtype)


def draft_back(
    c: ModelConfig, p: Params, x: Tensor, values: Tensor, counted: Tensor, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Second half of the draft block: hidden rows after its norm, expert loads."""
    x = x + project(values, p["attn_output.weight"], dtype)
    y, load = moe(c, p, rms_norm(x, p["ffn_norm.weight"], c.norm_epsilon), counted, dtype)
    return rms_norm(x + y, p["nextn.shared_head_norm.weight"], c.norm_epsilon), load


@dataclass(frozen=True, slots=True)
class Blocks:
    """The block functions, compiled or not."""

    kda: Callable[..., tuple[Tensor, Tensor]] = kda_block
    mla_front: Callable[..., tuple[Tensor, ...]] = mla_front
    mla_back: Callable[..., tuple[Tensor, Tensor]] = mla_back
    draft_front: Callable[..., tuple[Tensor, ...]] = draft_front
    draft_back: Callable[..., tuple[Tensor, Tensor]] = draft_back

    @classmethod
    def compiled(cls) -> Blocks:
        """Compile each function once; shapes are fixed by the tokens per batch."""
        names = ("kda", "mla_front", "mla_back", "draft_front", "draft_back")
        plain = cls()
        return cls(*(torch.compile(getattr(plain, n), dynamic=False) for n in names))


def grouped(params: Params) -> dict[int, Params]:
    """Group parameters by block number, with their short names."""
    out: dict[int, Params] = {}
    for name, value in params.items():
        if name.startswith("blk."):
            _, number, short = name.split(".", 2)
            out.setdefault(int(number), {})[short] = value
    return out


@dataclass(slots=True)
class Network:
    """A network of a config. Parameters are passed to each call."""

    config: ModelConfig
    dtype: torch.dtype
    stream_dtype: torch.dtype
    blocks: Blocks = field(default_factory=Blocks)

    def forward(self, params: Params, ids: Tensor, following: Tensor, pack: Packing) -> Output:
        """Run ids [t] and, for the draft block, the token after each, ``following`` [t]."""
        c, by_block = self.config, grouped(params)
        loads: dict[int, Tensor] = {}
        divergences: list[Tensor] = []
        recalls: list[Tensor] = []
        embedded = params["token_embd.weight"][ids]
        streams = embedded[:, None].expand(-1, c.streams, -1).contiguous().to(self.stream_dtype)
        for layer in range(c.layers):
            p = by_block[layer]
            if c.is_mla(layer):
                post, comb, *terms = self.blocks.mla_front(c, p, streams, self.dtype)
                values, divergence, recall = attend(c, tuple(terms), pack)
                streams, load = self.blocks.mla_back(
                    c, p, streams, values, (post, comb), pack.counted, self.dtype
                )
                divergences.append(divergence)
                recalls.append(recall)
            else:
                streams, load = self.blocks.kda(
                    c, p, streams, pack.document, pack.counted, self.dtype
                )
            if not c.is_dense(layer):
                loads[layer] = load
        mean = streams.to(embedded.dtype).mean(1)
        hidden = rms_norm(mean, params["output_norm.weight"], c.norm_epsilon)
        p = by_block[c.layers]
        x, *terms = self.blocks.draft_front(
            c, p, params["token_embd.weight"][following], hidden, self.dtype
        )
        values, divergence, recall = attend(c, tuple(terms), pack)
        drafted, loads[c.layers] = self.blocks.draft_back(
            c, p, x, values, pack.counted, self.dtype
        )
        return Output(hidden, drafted, loads, [*divergences, divergence], [*recalls, recall])
