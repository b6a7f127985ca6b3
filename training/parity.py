"""The torch network against the product, on random weights or on those of a run.

Writes a float file, reads it with ``localglm`` on the CPU (exact products) and
compares logits of the trunk and of the draft block. Run in an environment that has torch and the
product's dependencies: ``python -m training.parity``.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from localglm.arrays import AnyArray
from localglm.backends.cpu.device import CpuDevice
from localglm.gguf import open_model
from localglm.model.draft import Draft
from localglm.model.graph import Model
from localglm.model.load import load_model
from training.export.storage import Recipe
from training.export.to_gguf import write
from training.loop.checkpoint import load_parts
from training.model.config import DEMO, TINY, ModelConfig
from training.model.mla import Packing, visible_cells
from training.model.network import Network
from training.model.parameters import ROUTER_BIAS, Params, initial

BOUND = 1e-3


def lively(c: ModelConfig, seed: int) -> Params:
    """Return random parameters in which every part matters: no start value is neutral."""
    rng = torch.Generator().manual_seed(seed)
    params = initial(c, seed)
    for name, value in params.items():
        noise = torch.randn(value.shape, generator=rng)
        if name.endswith(ROUTER_BIAS):
            value += 0.05 * noise
        elif value.dim() == 1:
            value += 0.2 * noise
        elif name.endswith("ape.weight"):
            value += 0.5 * noise
    return params


def torch_logits(c: ModelConfig, params: Params, ids: list[int]) -> tuple[AnyArray, AnyArray]:
    """Return trunk logits [t, n] and draft logits [t - 1, n] in float64, selection in force."""
    t = len(ids)
    padded = torch.tensor(ids + [0] * (-t % 64))
    groups = 1
    while groups * 64 < len(padded):
        groups *= 2
    padded = torch.nn.functional.pad(padded, (0, groups * 64 - len(padded)))
    document = torch.zeros(len(padded), dtype=torch.long)
    document[t:] = 1 if t % c.pool == 0 else 0
    pack = Packing(
        rows=1, document=document, counted=torch.ones(len(padded)),
        visible=visible_cells(document, 1), probes=torch.zeros(1, 1, dtype=torch.long),
        selects=True, exact_ties=True,
    )  # fmt: skip
    wide = {name: value.double() for name, value in params.items()}
    following = torch.nn.functional.pad(padded[1:], (0, 1))
    with torch.no_grad():
        net = Network(c, torch.float64, torch.float64)
        out = net.forward(wide, padded, following, pack)
        head = wide["output.weight"]
        trunk, draft = (out.hidden @ head.T)[:t], (out.draft_hidden @ head.T)[: t - 1]
    return trunk.numpy(), draft.numpy()


def product_logits(path: Path, ids: list[int], *, exact: bool) -> tuple[AnyArray, AnyArray]:
    """Return the same logits as the product computes them from a file."""
    device = CpuDevice(2, exact_activations=exact)
    with open_model(path) as file:
        model = Model(*load_model(file, device), device)
        state = model.new_state(context=len(ids), cache_type="f32")
        out = model.advance(state, ids, logits="all")
        draft = Draft(model, context=len(ids), cache_type="f32")
        drafted = draft.step(ids[1:], device.rows(out.hidden, 0, len(ids) - 1))
        assert out.logits is not None
        return np.array(out.logits), np.array(drafted.logits)


def relative(got: AnyArray, want: AnyArray) -> float:
    """Largest error of a row over that row's largest magnitude."""
    return float((np.abs(got - want).max(-1) / np.abs(want).max(-1)).max())


def compare(path: Path, params: Params, c: ModelConfig, ids: list[int]) -> None:
    """Print the largest errors of the product on a float file; fail beyond the bound."""
    want, got = torch_logits(c, params, ids), product_logits(path, ids, exact=True)
    for name, g, w in zip(("trunk", "draft"), got, want, strict=True):
        error = relative(g, w)
        print(f"{name}: {error:.2e} over {len(g)} rows")
        assert error < BOUND, f"{name}: {error} is not below {BOUND}"


def write_fixture(folder: Path) -> None:
    """Write the small file and the logits that tests/training/test_export.py compares with."""
    c = replace(TINY, vocabulary=64, experts=4, dense_width=32)
    params = lively(c, 7)
    ids = np.random.default_rng(11).integers(0, c.vocabulary, 200).tolist()
    write(folder / "export-tiny.gguf", params, c, Recipe.FLOAT, tokenizer=False)
    trunk, draft = torch_logits(c, params, ids)
    np.savez_compressed(
        folder / "export-tiny.npz", ids=np.array(ids, np.int32),
        trunk=trunk.astype(np.float32), draft=draft.astype(np.float32),
    )  # fmt: skip


def main() -> None:
    """Compare random weights of a shape, or a checkpoint on random ids; or write the fixture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=300)
    parser.add_argument("--shape", choices=("tiny", "demo"), default="tiny")
    parser.add_argument("--checkpoint", type=Path, help="folder of a run; implies --shape demo")
    parser.add_argument("--fixture", type=Path, help="write the test fixture into this folder")
    chosen = parser.parse_args()
    if chosen.fixture:
        write_fixture(chosen.fixture)
        return
    c = TINY if chosen.shape == "tiny" and not chosen.checkpoint else DEMO
    params = load_parts(chosen.checkpoint) if chosen.checkpoint else lively(c, 5)
    ids = np.random.default_rng(3).integers(0, c.vocabulary, chosen.tokens).tolist()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "random.gguf"
        write(path, params, c, Recipe.FLOAT, tokenizer=False)
        compare(path, params, c, ids)


if __name__ == "__main__":
    main()
