"""Write a model file from parameters.

Run as ``python -m training.export.to_gguf CHECKPOINT_FOLDER OUT.gguf --recipe demo``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import numpy.typing as npt
from gguf import GGUFWriter, quants

from training.export.metadata import ARCH, add_metadata
from training.export.storage import Recipe, storage_type
from training.loop.checkpoint import load_parts
from training.model.config import DEMO, ModelConfig
from training.model.parameters import Params

Array = npt.NDArray[np.float32]


def tensors(params: Params) -> dict[str, Array]:
    """Return the tensors of a file by name, in float32."""
    out: dict[str, Array] = {}
    for name, value in params.items():
        array = value.detach().float().cpu().numpy()
        if name.endswith("ssm_a_log"):
            out[name.removesuffix("_log")] = -np.exp(array)
        elif "ssm_conv1d" in name:
            out[name] = array[:, None, :]
        else:
            out[name] = array
    return out


def write(
    path: Path, params: Params, c: ModelConfig, recipe: Recipe, *, tokenizer: bool = True
) -> None:
    """Write one file."""
    writer = GGUFWriter(path, ARCH)
    add_metadata(writer, c, tokenizer=tokenizer)
    for name, array in tensors(params).items():
        kind = storage_type(recipe, name, array.shape)
        stored = quants.quantize(np.ascontiguousarray(array), kind)
        writer.add_tensor(name, stored, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> None:
    """Convert a checkpoint."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--recipe", choices=[r.value for r in Recipe], default="demo")
    chosen = parser.parse_args()
    params = load_parts(chosen.checkpoint)
    write(chosen.out, params, DEMO, Recipe(chosen.recipe))
    print(f"{chosen.out}: {chosen.out.stat().st_size / 2**20:.2f} MiB")


if __name__ == "__main__":
    main()
