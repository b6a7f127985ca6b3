"""Write GGUF files for tests: any header, and complete tiny random models of any shape and dialect.

``pack`` lays out a file from values; ``tiny_model`` makes the content of a model; ``write_model``
writes one, in as many shards as asked. ``edit`` hooks change the content before it is written,
which is how damaged and odd files are made.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import gguf
import numpy as np

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
_FORMATS = dict(
    zip((U8, I8, U16, I16, U32, I32, F32, BOOL, U64, I64, F64), "BbHhIif?Qqd", strict=True)
)
_PAIRED = ("think", "tool_call", "tool_response", "arg_key", "arg_value")
_SINGLE = ("<|endoftext|>", "[MASK]", "[gMASK]", "[sMASK]", "<sop>", "<eop>", "<|system|>")
_TURNS = ("<|user|>", "<|assistant|>", "<|observation|>")
SPECIAL_TOKENS = (*_SINGLE, *_TURNS, *(f"<{end}{name}>" for name in _PAIRED for end in ("", "/")))
TEMPLATE = (
    "[gMASK]<sop><|system|>Reasoning Effort: {{ 'Low' if reasoning_effort == 'low' else"
    " 'High' if reasoning_effort == 'high' else 'Max' }}"
    "{%- for m in messages -%}"
    "<|{{ m.role }}|>{% if m.role == 'assistant' %}<think></think>{% endif %}{{ m.content }}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}<|assistant|><think>{%- endif -%}"
)
# byte offsets of float16 scales in blocks that gguf cannot quantise to; IQ1_M is a case of its own
_SCALES = {
    "Q2_K": (80, 82),
    "Q3_K": (108,),
    "Q4_K": (0, 2),
    "Q5_K": (0, 2),
    "Q6_K": (208,),
    "IQ1_M": (),
}


@dataclass
class Value:
    """A metadata value with its file type; a list makes an array of that type."""

    kind: int
    value: object


@dataclass
class Tensor:
    """A tensor: ``ne`` innermost first, file type id, bytes. ``offset`` None: after the last."""

    name: str
    ne: tuple[int, ...]
    type_id: int
    data: bytes
    offset: int | None = None


@dataclass
class Content:
    """What a file holds before it is laid out."""

    metadata: dict[str, Value] = field(default_factory=dict)
    tensors: list[Tensor] = field(default_factory=list)

    def drop(self, *prefixes: str) -> None:
        """Remove the tensors whose names start so."""
        self.tensors = [t for t in self.tensors if not t.name.startswith(prefixes)]

    def tensor(self, name: str) -> Tensor:
        """Return one tensor by name."""
        return next(t for t in self.tensors if t.name == name)


@dataclass(frozen=True)
class Tiny:
    """A tiny model. ``layers``: K for linear, M for latent attention, the draft block not counted.

    ``storage`` is the type of matrices, ``storage_of`` of those whose name ends so; a type
    whose blocks do not fit a row gives way to F16. Vectors are F32. Widths of 256 and more make
    room for all types.
    """

    arch: str = "glm5next"
    layers: str = "KKMK"
    draft: bool = True
    dense_lead: int = 1
    width: int = 64
    vocabulary: int = 320
    heads: int = 2
    kda_width: int = 32
    taps: int = 4
    query_latent: int = 64
    latent: int = 32
    key_width: int = 32
    value_width: int = 64
    indexer_heads: int = 2
    indexer_width: int = 32
    top_k: int = 16
    pool: int = 4
    dense_width: int = 96
    expert_width: int = 32
    experts: int = 6
    used: int = 2
    limit: float = 10.0
    context: int = 4096
    storage: str = "F32"
    storage_of: Mapping[str, str] = field(default_factory=dict)
    tokenizer: bool = True
    trailing_ones: bool = False
    seed: int = 1

    @property
    def blocks(self) -> int:
        """Trunk layers and the draft block."""
        return len(self.layers) + self.draft


Edit = Callable[[Content], None]


def pack(
    content: Content, *, version: int = 3, alignment: int = 32, tail_padding: bool = True
) -> bytes:
    """Lay out one file."""
    out = bytearray(
        b"GGUF" + struct.pack("<IQQ", version, len(content.tensors), len(content.metadata))
    )
    for key, value in content.metadata.items():
        out += _text(key) + _value(value)
    place, placed = 0, []
    for t in content.tensors:
        at = place if t.offset is None else t.offset
        placed.append(at)
        out += _text(t.name) + struct.pack(f"<I{len(t.ne)}Q", len(t.ne), *t.ne)
        out += struct.pack("<IQ", t.type_id, at)
        place = -(-(at + len(t.data)) // alignment) * alignment
    if content.tensors:
        out += bytes(-len(out) % alignment)
    base = len(out)
    for at, t in zip(placed, content.tensors, strict=True):
        out += bytes(max(0, base + at - len(out)))
        out[base + at : base + at + len(t.data)] = t.data
    if tail_padding and content.tensors:
        out += bytes(-len(out) % alignment)
    return bytes(out)


def write_model(
    folder: Path,
    spec: Tiny | None = None,
    *,
    edit: Edit | None = None,
    name: str = "tiny",
    shards: int = 1,
    digits: int = 5,
    metadata_shard: bool = True,
    first_number: int = 0,
    first_name: int = 1,
) -> Path:
    """Write a model and return its first file.

    With several shards the first holds the metadata and, when ``metadata_shard``, no tensor;
    ``first_number`` is ``split.no`` of the first, ``first_name`` the number in its name.
    """
    content = tiny_model(spec or Tiny())
    if edit is not None:
        edit(content)
    if shards == 1:
        path = folder / f"{name}.gguf"
        path.write_bytes(pack(content))
        return path
    groups: list[list[Tensor]] = [[] for _ in range(shards)]
    homes = shards - 1 if metadata_shard else shards
    for i, t in enumerate(content.tensors):
        groups[i * homes // len(content.tensors) + shards - homes].append(t)
    paths = []
    for i, group in enumerate(groups):
        split = {
            "split.no": Value(U16, i + first_number),
            "split.count": Value(U16, shards),
            "split.tensors.count": Value(I32, len(content.tensors)),
        }
        part = Content({**(content.metadata if i == 0 else {}), **split}, group)
        paths.append(folder / f"{name}-{i + first_name:0{digits}d}-of-{shards:0{digits}d}.gguf")
        paths[-1].write_bytes(pack(part))
    return paths[0]


def tiny_model(spec: Tiny) -> Content:
    """Make the metadata and random tensors of a model that runs."""
    content = Content(_metadata(spec))
    if spec.tokenizer:
        content.metadata |= _tokenizer(spec)
    maker = _Maker(spec, content.tensors)
    maker.matrix("token_embd.weight", spec.width, spec.vocabulary)
    maker.vector("output_norm.weight", np.ones(spec.width))
    maker.matrix("output.weight", spec.width, spec.vocabulary)
    for i in range(spec.blocks):
        maker.block(i)
    return content


def encode(values: np.ndarray, type_name: str, rng: np.random.Generator) -> bytes:
    """Store values in a type; types gguf cannot quantise to get random blocks of the same rms."""
    kind = gguf.GGMLQuantizationType[type_name]
    try:
        return gguf.quants.quantize(values.astype(np.float32), kind).tobytes()
    except NotImplementedError:
        return _random_blocks(values, kind, rng)


def _random_blocks(
    values: np.ndarray, kind: gguf.GGMLQuantizationType, rng: np.random.Generator
) -> bytes:
    per, size = gguf.GGML_QUANT_SIZES[kind]
    raw = rng.integers(0, 256, (values.size // per, size), dtype=np.uint8)

    def scaled(scale: float) -> np.ndarray:
        bits = np.float16(scale).view(np.uint16)
        if kind.name == "IQ1_M":  # the scale lies in the top nibbles of the last four words
            words = raw[:, 48:].view(np.uint16) & 0x0FFF
            for j in range(4):
                words[:, j] |= ((int(bits) >> (4 * j)) & 15) << 12
            raw[:, 48:] = words.view(np.uint8)
        for at in _SCALES.get(kind.name, (0,)):
            raw[:, at : at + 2] = np.frombuffer(bits.tobytes(), np.uint8)
        return raw

    rms = float(np.sqrt(np.mean(gguf.quants.dequantize(scaled(1.0), kind).astype(np.float64) ** 2)))
    wanted = float(np.sqrt(np.mean(np.square(values, dtype=np.float64))))
    return scaled(wanted / rms).tobytes()


class _Maker:
    """Adds the tensors of a model, shapes as the format lists them (innermost first)."""

    def __init__(self, spec: Tiny, tensors: list[Tensor]) -> None:
        self.spec = spec
        self.tensors = tensors
        self.rng = np.random.default_rng(spec.seed)

    def matrix(self, name: str, *ne: int, storage: str | None = None) -> None:
        kind = storage or self.spec.storage
        for ending, other in self.spec.storage_of.items():
            if name.endswith(ending):
                kind = other
        if ne[0] % gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]][0]:
            kind = "F16"
        values = self.rng.standard_normal(ne[::-1]).astype(np.float32) / np.float32(ne[0] ** 0.5)
        self._add(name, ne, kind, encode(values, kind, self.rng))

    def vector(self, name: str, values: np.ndarray) -> None:
        array = np.asarray(values, np.float32)
        self._add(name, array.shape[::-1], "F32", array.tobytes())

    def _add(self, name: str, ne: tuple[int, ...], kind: str, data: bytes) -> None:
        if self.spec.trailing_ones:
            ne = (*ne, *[1] * (4 - len(ne)))
        self.tensors.append(Tensor(name, ne, int(gguf.GGMLQuantizationType[kind]), data))

    def block(self, i: int) -> None:
        spec, at, rng = self.spec, f"blk.{i}.", self.rng
        is_draft = i == len(spec.layers)
        for norm in ("attn_norm", "ffn_norm"):
            self.vector(f"{at}{norm}.weight", 1 + 0.1 * rng.standard_normal(spec.width))
        if not is_draft:
            for site in ("attn", "ffn"):
                self.matrix(f"{at}hc_{site}_fn.weight", 4 * spec.width, 24)
                self.vector(f"{at}hc_{site}_base.weight", rng.uniform(-0.5, 0.5, 24))
                self.vector(f"{at}hc_{site}_scale.weight", rng.uniform(0.1, 0.5, 3))
        if is_draft or spec.layers[i] == "M":
            self._latent(at)
        else:
            self._linear(at)
        if i < spec.dense_lead:
            self._swiglu(at, "", spec.dense_width)
        else:
            self._experts(at)
        if is_draft:
            self.matrix(f"{at}nextn.eh_proj.weight", 2 * spec.width, spec.width)
            for norm in ("enorm", "hnorm", "shared_head_norm"):
                self.vector(f"{at}nextn.{norm}.weight", np.ones(spec.width))

    def _linear(self, at: str) -> None:
        spec, rng = self.spec, self.rng
        inner = spec.heads * spec.kda_width
        for part in "qkv":
            self.matrix(f"{at}attn_{part}.weight", spec.width, inner)
            self.vector(f"{at}ssm_conv1d_{part}.weight", rng.normal(0, 0.5, (inner, 1, spec.taps)))
        self.matrix(f"{at}attn_output.weight", inner, spec.width)
        for part in "fg":
            self.matrix(f"{at}ssm_{part}_a.weight", spec.width, spec.kda_width)
            self.matrix(f"{at}ssm_{part}_b.weight", spec.kda_width, inner)
        self.matrix(f"{at}ssm_beta.weight", spec.width, spec.heads)
        self.vector(f"{at}ssm_a", -np.exp(rng.uniform(-1, 1, spec.heads)))
        self.vector(f"{at}ssm_dt.bias", rng.uniform(-2, 2, inner))
        self.vector(f"{at}ssm_norm.weight", np.ones(spec.kda_width))

    def _latent(self, at: str) -> None:
        spec, rng = self.spec, self.rng
        self.matrix(f"{at}attn_q_a.weight", spec.width, spec.query_latent)
        self.vector(f"{at}attn_q_a_norm.weight", np.ones(spec.query_latent))
        self.matrix(f"{at}attn_q_b.weight", spec.query_latent, spec.heads * spec.key_width)
        self.matrix(f"{at}attn_kv_a_mqa.weight", spec.width, spec.latent)
        self.vector(f"{at}attn_kv_a_norm.weight", np.ones(spec.latent))
        self.matrix(f"{at}attn_k_b.weight", spec.key_width, spec.latent, spec.heads)
        self.matrix(f"{at}attn_v_b.weight", spec.latent, spec.value_width, spec.heads)
        self.matrix(f"{at}attn_output.weight", spec.heads * spec.value_width, spec.width)
        queries = spec.indexer_heads * spec.indexer_width
        self.matrix(f"{at}indexer.attn_q_b.weight", spec.query_latent, queries)
        self.matrix(f"{at}indexer.attn_k.weight", spec.width, spec.indexer_width)
        self.vector(f"{at}indexer.k_norm.weight", np.ones(spec.indexer_width))
        self.vector(f"{at}indexer.k_norm.bias", rng.normal(0, 0.1, spec.indexer_width))
        self.matrix(f"{at}indexer.proj.weight", spec.width, spec.indexer_heads, storage="F32")
        self.matrix(f"{at}indexer_compressor_gate.weight", spec.width, spec.indexer_width)
        slots = rng.normal(0, 0.5, (spec.pool, spec.indexer_width))
        self.vector(f"{at}indexer_compressor_ape.weight", slots)

    def _experts(self, at: str) -> None:
        spec = self.spec
        self.matrix(f"{at}ffn_gate_inp.weight", spec.width, spec.experts, storage="F32")
        self.vector(f"{at}exp_probs_b.bias", self.rng.uniform(-0.05, 0.05, spec.experts))
        for part in ("gate", "up"):
            self.matrix(f"{at}ffn_{part}_exps.weight", spec.width, spec.expert_width, spec.experts)
        self.matrix(f"{at}ffn_down_exps.weight", spec.expert_width, spec.width, spec.experts)
        self._swiglu(at, "_shexp", spec.expert_width)

    def _swiglu(self, at: str, kind: str, inner: int) -> None:
        self.matrix(f"{at}ffn_gate{kind}.weight", self.spec.width, inner)
        self.matrix(f"{at}ffn_up{kind}.weight", self.spec.width, inner)
        self.matrix(f"{at}ffn_down{kind}.weight", inner, self.spec.width)


def _counts(spec: Tiny) -> dict[str, int]:
    counts = {
        "block_count": spec.blocks,
        "context_length": spec.context,
        "embedding_length": spec.width,
        "feed_forward_length": spec.dense_width,
        "vocab_size": spec.vocabulary,
        "attention.head_count": spec.heads,
        "attention.q_lora_rank": spec.query_latent,
        "attention.kv_lora_rank": spec.latent,
        "attention.key_length": spec.latent,
        "attention.value_length": spec.latent,
        "attention.key_length_mla": spec.key_width,
        "attention.value_length_mla": spec.value_width,
        "rope.dimension_count": 0,
        "attention.indexer.head_count": spec.indexer_heads,
        "attention.indexer.key_length": spec.indexer_width,
        "attention.indexer.top_k": spec.top_k,
        "attention.indexer.kpool": spec.pool,
        "ssm.conv_kernel": spec.taps,
        "kda.head_dim": spec.kda_width,
        "hyper_connection.count": 4,
        "hyper_connection.sinkhorn_iterations": 20,
        "leading_dense_block_count": spec.dense_lead,
        "expert_count": spec.experts,
        "expert_used_count": spec.used,
        "expert_shared_count": 1,
        "expert_feed_forward_length": spec.expert_width,
        "expert_gating_func": 2,
        "expert_group_count": 1,
        "expert_group_used_count": 1,
    }
    if spec.draft:
        counts["nextn_predict_layers"] = 1
    if spec.arch != "glm5-next":
        counts["expert_shared_feed_forward_length"] = spec.expert_width
    return counts


def _metadata(spec: Tiny) -> dict[str, Value]:
    numbers = {
        "attention.layer_norm_rms_epsilon": 1e-5,
        "attention.layer_norm_epsilon": 1e-6,
        "kda.gate_lower_bound": -5.0,
        "hyper_connection.epsilon": 1e-6,
        "expert_weights_scale": 2.5,
    }
    kinds = [int(kind == "M") for kind in spec.layers] + [1] * spec.draft
    rest = {
        "expert_weights_norm": Value(BOOL, True),
        "attention.head_count_kv": Value(I32, kinds),
        "swiglu_clamp_exp": Value(F32, [spec.limit] * spec.blocks),
        "swiglu_clamp_shexp": Value(F32, [spec.limit] * spec.blocks),
    }
    if spec.arch == "glm5-next":
        rest["attention.indexer.kpool_select_tail"] = Value(BOOL, True)
        rest["attention.indexer.types"] = Value(BOOL, [True] * spec.blocks)
        rest["attention.indexer.index_share_mtp"] = Value(BOOL, True)
    return {
        "general.architecture": Value(STRING, spec.arch),
        "general.name": Value(STRING, "tiny random model"),
        **{f"{spec.arch}.{key}": Value(U32, value) for key, value in _counts(spec).items()},
        **{f"{spec.arch}.{key}": Value(F32, value) for key, value in numbers.items()},
        **{f"{spec.arch}.{key}": value for key, value in rest.items()},
    }


def _tokenizer(spec: Tiny) -> dict[str, Value]:
    keep = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in keep]
    alphabet = [chr(b if b in keep else 256 + others.index(b)) for b in range(256)]
    space = alphabet[32]
    merges = [f"{space} {space}", "t h", "th e"]
    tokens = [*alphabet, *(m.replace(" ", "") for m in merges), *SPECIAL_TOKENS]
    kinds = [1] * (256 + len(merges)) + [3] * len(SPECIAL_TOKENS)
    spare = spec.vocabulary - len(tokens)
    assert spare >= 0, f"a tokenizer needs a vocabulary of {len(tokens)}"
    ids = {token: i for i, token in enumerate(tokens)}
    values = {
        "model": Value(STRING, "gpt2"),
        "pre": Value(STRING, "glm4"),
        "tokens": Value(STRING, tokens + [f"[PAD{i}]" for i in range(spare)]),
        "token_type": Value(I32, kinds + [5] * spare),
        "merges": Value(STRING, merges),
        "eos_token_id": Value(U32, ids["<|endoftext|>"]),
        "eot_token_id": Value(U32, ids["<|user|>"]),
        "eom_token_id": Value(U32, ids["<|observation|>"]),
        "bos_token_id": Value(U32, ids["[gMASK]"]),
        "padding_token_id": Value(U32, ids["<|endoftext|>"]),
    }
    named = {f"tokenizer.ggml.{key}": value for key, value in values.items()}
    return named | {"tokenizer.chat_template": Value(STRING, TEMPLATE)}


def _text(text: str | bytes) -> bytes:
    raw = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(raw)) + raw


def _value(value: Value) -> bytes:
    if isinstance(value.value, list):
        head = struct.pack("<IIQ", ARRAY, value.kind, len(value.value))
        if value.kind == STRING:
            return head + b"".join(_text(text) for text in value.value)
        return head + struct.pack(f"<{len(value.value)}{_FORMATS[value.kind]}", *value.value)
    if value.kind == STRING:
        return struct.pack("<I", STRING) + _text(value.value)
    return struct.pack("<I" + _FORMATS[value.kind], value.kind, value.value)
