"""What a model file holds, in numbers a person asks for. Touches no tensor data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import Enum

from localglm.gguf import ModelFile, StringArray, TensorInfo
from localglm.model.geometry import AttentionKind, Geometry
from localglm.model.inventory import Found, Survey, survey
from localglm.model.roles import Role


@dataclass(frozen=True, slots=True)
class Storage:
    """Tensors of one role in one type."""

    role: str
    type: str
    tensors: int
    parameters: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class Parameters:
    """Numbers of weights; ``per_token`` are those one token of the trunk is multiplied by."""

    trunk: int
    draft: int
    per_token: int


@dataclass(frozen=True, slots=True)
class Layers:
    """Trunk layers by kind of attention and of feed-forward."""

    trunk: int
    linear: int
    latent: int
    dense: int
    routed: int


@dataclass(frozen=True, slots=True)
class TokenizerFacts:
    """What the file says about its tokenizer; None where it says nothing."""

    model: str | None
    pre: str | None
    tokens: int | None
    merges: int | None
    has_template: bool


@dataclass(frozen=True, slots=True)
class Description:
    """A model file in numbers."""

    architecture: str
    name: str | None
    files: tuple[str, ...]
    file_bytes: int
    parameters: Parameters
    layers: Layers
    geometry: Geometry
    storage: tuple[Storage, ...]
    tokenizer: TokenizerFacts
    drafts: bool
    missing: tuple[str, ...]
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, object]:
        """Return plain values, ready for JSON."""
        return asdict(self, dict_factory=_plain_dict)


def describe(file: ModelFile) -> Description:
    """Check a file and describe it.

    Raises: ModelFileError when the file does not pass the check.
    """
    found = survey(file)
    name = file.metadata.get("general.name")
    tokenizer = _tokenizer(file)
    return Description(
        architecture=file.arch,
        name=name if isinstance(name, str) else None,
        files=tuple(str(path) for path in file.paths),
        file_bytes=file.file_bytes,
        parameters=_parameters(found),
        layers=_layers(found.geometry),
        geometry=found.geometry,
        storage=_storage(found),
        tokenizer=tokenizer,
        drafts=found.geometry.draft is not None,
        missing=_missing(found, tokenizer),
        notes=found.notes,
    )


def _plain_dict(pairs: list[tuple[str, object]]) -> dict[str, object]:
    return {key: value.value if isinstance(value, Enum) else value for key, value in pairs}


def _parameters(found: Survey) -> Parameters:
    geometry = found.geometry
    trunk = draft = per_token = 0
    for item in found.tensors.values():
        values = item.info.values
        if _is_draft(item, geometry):
            draft += values
            continue
        trunk += values
        if item.expected.role in (Role.EXPERT_GATE_UP, Role.EXPERT_DOWN):
            per_token += values // geometry.moe.experts * geometry.moe.used
        elif item.expected.role is not Role.EMBEDDING or "output.weight" not in found.tensors:
            per_token += values
    return Parameters(trunk, draft, per_token)


def _is_draft(item: Found, geometry: Geometry) -> bool:
    draft = geometry.draft
    return draft is not None and item.expected.name.startswith(f"blk.{draft.index}.")


def _layers(geometry: Geometry) -> Layers:
    layers = geometry.layers
    linear = sum(layer.attention is AttentionKind.KDA for layer in layers)
    dense = sum(layer.dense for layer in layers)
    return Layers(len(layers), linear, len(layers) - linear, dense, len(layers) - dense)


def _storage(found: Survey) -> tuple[Storage, ...]:
    """Sum tensors up by role and type, in the order of ``Role``; the draft block is one role."""
    groups: dict[tuple[Role, str], list[TensorInfo]] = {}
    for item in found.tensors.values():
        role = Role.DRAFT if _is_draft(item, found.geometry) else item.expected.role
        groups.setdefault((role, item.info.type_name), []).append(item.info)
    for info in found.ignored:
        groups.setdefault((Role.IGNORED, info.type_name), []).append(info)
    order = list(Role)
    ranked = sorted(groups.items(), key=lambda group: (order.index(group[0][0]), group[0][1]))
    return tuple(_sum(role, kind, infos) for (role, kind), infos in ranked)


def _sum(role: Role, kind: str, infos: Iterable[TensorInfo]) -> Storage:
    listed = list(infos)
    return Storage(
        role=role.value,
        type=kind,
        tensors=len(listed),
        parameters=sum(info.values for info in listed),
        nbytes=sum(info.nbytes for info in listed),
    )


def _tokenizer(file: ModelFile) -> TokenizerFacts:
    def text(key: str) -> str | None:
        value = file.metadata.get(key)
        return value if isinstance(value, str) else None

    def length(key: str) -> int | None:
        value = file.metadata.get(key)
        return len(value) if isinstance(value, StringArray) else None

    return TokenizerFacts(
        model=text("tokenizer.ggml.model"),
        pre=text("tokenizer.ggml.pre"),
        tokens=length("tokenizer.ggml.tokens"),
        merges=length("tokenizer.ggml.merges"),
        has_template=text("tokenizer.chat_template") is not None,
    )


def _missing(found: Survey, tokenizer: TokenizerFacts) -> tuple[str, ...]:
    absent = {
        "draft block": found.geometry.draft is None,
        "output head": "output.weight" not in found.tensors,
        "tokenizer": tokenizer.tokens is None,
        "chat template": not tokenizer.has_template,
    }
    return tuple(part for part, is_absent in absent.items() if is_absent)
