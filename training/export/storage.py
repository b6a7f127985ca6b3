"""Which storage type each tensor gets in a float file and in the file that is shipped."""

from __future__ import annotations

from enum import Enum

from gguf import GGMLQuantizationType as Type


class Recipe(Enum):
    """What an exported file is for."""

    FLOAT = "float"  # the parameters as trained
    HALF = "half"  # matrices in F16
    DEMO = "demo"  # at most 16 MiB, for the wheel


_ALWAYS_FLOAT = ("ffn_gate_inp.weight", "indexer.proj.weight")
_FINE = ("token_embd.weight", "output.weight", "fn.weight", "eh_proj.weight", "ssm_beta.weight")
"""Embedding, head and outputs of attention, stream mixing, draft input, beta: errors spread."""


def storage_type(recipe: Recipe, name: str, shape: tuple[int, ...]) -> Type:
    """Return the type of a tensor. Vectors, filters and the router stay in F32."""
    small = len(shape) == 1 or "ssm_conv1d" in name or "compressor_ape" in name
    if recipe is Recipe.FLOAT or small or name.endswith(_ALWAYS_FLOAT):
        return Type.F32
    if recipe is Recipe.HALF:
        return Type.F16
    return Type.Q8_0 if name.endswith(_FINE) else Type.Q5_1
