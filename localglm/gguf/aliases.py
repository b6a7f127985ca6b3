"""Spellings: architecture names, key prefixes and keys that mean the same thing.

Source: the two dialects of published files (``glm5next`` and ``glm5-next``) and an older converter
draft.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

ARCHITECTURES = ("glm5next", "glm5-next")

KEY_ALIASES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "attention.indexer.kpool": (
            "attention.indexer.block_size",
            "attention.indexer.kpool_size",
            "attention.indexer.pool_size",
        ),
        "kda.head_dim": ("ssm.state_size",),
        "attention.kv_lora_rank": ("attention.key_length",),
    }
)

OLDER_DIALECT = (
    "attention.indexer.block_size",
    "ssm.inner_size",
    "ssm.state_size",
    "ssm.group_count",
)


def is_accepted(architecture: str) -> bool:
    """Tell whether a name is a spelling of the one architecture localglm runs."""
    plain = architecture.casefold().replace("-", "").replace("_", "").replace(".", "")
    return plain == "glm5next"


def architecture_keys(metadata: Mapping[str, object], architecture: str) -> dict[str, str]:
    """Map each key without its prefix to the key as the file spells it.

    Every spelling of the prefix counts; the one that equals ``architecture`` wins.
    """
    found: dict[str, str] = {}
    for key in metadata:
        prefix, _, rest = key.partition(".")
        if rest and is_accepted(prefix) and (rest not in found or prefix == architecture):
            found[rest] = key
    return found


def resolve(keys: Mapping[str, str], key: str) -> str | None:
    """Return the file's spelling of ``key`` or of one of its aliases, or None."""
    for name in (key, *KEY_ALIASES.get(key, ())):
        if name in keys:
            return keys[name]
    return None


def alias_notes(keys: Mapping[str, str]) -> list[str]:
    """Say which aliases stand in for the usual key."""
    notes = []
    older = [keys[name] for name in OLDER_DIALECT if name in keys]
    if older:
        notes.append(f"keys of an older converter are understood: {', '.join(older)}")
    for usual, others in KEY_ALIASES.items():
        used = resolve(keys, usual)
        if usual not in keys and used is not None and others:
            notes.append(f"{used} is read as {usual}")
    return notes
