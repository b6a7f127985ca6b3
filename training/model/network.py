"""The whole network over a packed batch: trunk, head and draft block.

Blocks are plain functions of tensors, compiled once per kind by ``Blocks`` and used for every
layer of that kind. The attention core and the states of linear attention, whose shapes depend on
the row length, stay uncompiled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields

import torch
from torch import Tensor

from training.model.config import ModelConfig
from training.model.experts import moe, swiglu
from training.model.hyper import hyper_post, hyper_pre
from training.model.kda import kda_output, kda_terms
from training.model.kda_chunk import outputs, states
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


def ffn_site(
    c: ModelConfig, p: Params, streams: Tensor, counted: Tensor, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Run the second half of a trunk block: streams [t, s, d] -> streams, expert loads."""
    mixed, post, comb = hyper_pre(c, p, "ffn", streams)
    x = rms_norm(mixed, p["ffn_norm.weight"], c.norm_epsilon)
    if "ffn_gate.weight" in p:
        y, load = swiglu(c, p, "", x, dtype), x.new_zeros(0)
    else:
        y, load = moe(c, p, x, counted, dtype)
    return hyper_post(y, streams, post, comb), load


def kda_front(
    c: ModelConfig, p: Params, streams: Tensor, document: Tensor, dtype: torch.dtype
) -> tuple[Tensor, ...]:
    """Run a linear-attention site up to the states: post, comb, then the terms."""
    mixed, post, comb = hyper_pre(c, p, "attn", streams)
    x = rms_norm(mixed, p["attn_norm.weight"], c.norm_epsilon)
    return post, comb, *kda_terms(c, p, x, document, dtype)


def kda_back(
    c: ModelConfig, p: Params, streams: Tensor, mix: tuple[Tensor, Tensor],
    terms: tuple[Tensor, ...], dtype: torch.dtype,
) -> Tensor:  # fmt: skip
    """Finish the site from (reads, local, states, gate)."""
    reads, local, state, gate = terms
    y = kda_output(c, p, outputs(reads, local, state), gate, dtype)
    return hyper_post(y, streams, *mix)


def mla_front(c: ModelConfig, p: Params, streams: Tensor, dtype: torch.dtype) -> tuple[Tensor, ...]:
    """Run a latent-attention site up to the attention: post, comb, then its terms."""
    mixed, post, comb = hyper_pre(c, p, "attn", streams)
    x = rms_norm(mixed, p["attn_norm.weight"], c.norm_epsilon)
    return post, comb, *attention_terms(c, p, x, dtype)


def mla_back(
    p: Params, streams: Tensor, values: Tensor, mix: tuple[Tensor, Tensor], dtype: torch.dtype
) -> Tensor:
    """Finish the site from attended values [t, h * v]."""
    return hyper_post(project(values, p["attn_output.weight"], dtype), streams, *mix)


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
    """The functions a network is made of, compiled or not."""

    kda_front: Callable[..., tuple[Tensor, ...]] = kda_front
    kda_back: Callable[..., Tensor] = kda_back
    mla_front: Callable[..., tuple[Tensor, ...]] = mla_front
    mla_back: Callable[..., Tensor] = mla_back
    ffn_site: Callable[..., tuple[Tensor, Tensor]] = ffn_site
    draft_front: Callable[..., tuple[Tensor, ...]] = draft_front
    draft_back: Callable[..., tuple[Tensor, Tensor]] = draft_back

    @classmethod
    def compiled(cls) -> Blocks:
        """Compile each function once; shapes are fixed by the tokens per batch."""
        plain = cls()
        names = [f.name for f in fields(cls)]
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
        embedded = torch.nn.functional.embedding(ids, params["token_embd.weight"])
        streams = embedded[:, None].expand(-1, c.streams, -1).contiguous().to(self.stream_dtype)
        for layer in range(c.layers):
            p = by_block[layer]
            if c.is_mla(layer):
                streams, divergence, recall = self._mla_site(p, streams, pack)
                divergences.append(divergence)
                recalls.append(recall)
            else:
                streams = self._kda_site(p, streams, pack)
            streams, load = self.blocks.ffn_site(c, p, streams, pack.counted, self.dtype)
            if not c.is_dense(layer):
                loads[layer] = load
        mean = streams.to(embedded.dtype).mean(1)
        hidden = rms_norm(mean, params["output_norm.weight"], c.norm_epsilon)
        p = by_block[c.layers]
        following_rows = torch.nn.functional.embedding(following, params["token_embd.weight"])
        x, *terms = self.blocks.draft_front(c, p, following_rows, hidden, self.dtype)
        values, divergence, recall = attend(c, tuple(terms), pack)
        drafted, loads[c.layers] = self.blocks.draft_back(c, p, x, values, pack.counted, self.dtype)
        return Output(hidden, drafted, loads, [*divergences, divergence], [*recalls, recall])

    def _kda_site(self, p: Params, streams: Tensor, pack: Packing) -> Tensor:
        post, comb, reads, local, passed, added, gate = self.blocks.kda_front(
            self.config, p, streams, pack.document, self.dtype
        )
        state = states(passed, added, pack.rows)
        return self.blocks.kda_back(
            self.config, p, streams, (post, comb), (reads, local, state, gate), self.dtype
        )

    def _mla_site(self, p: Params, streams: Tensor, pack: Packing) -> tuple[Tensor, Tensor, Tensor]:
        post, comb, *terms = self.blocks.mla_front(self.config, p, streams, self.dtype)
        values, divergence, recall = attend(self.config, tuple(terms), pack)
        streams = self.blocks.mla_back(p, streams, values, (post, comb), self.dtype)
        return streams, divergence, recall
