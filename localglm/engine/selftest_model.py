"""The demonstration model over a fixed prompt, against logits the reference back end once gave.

``python -m localglm.engine.selftest_model`` computes and writes the known logits anew.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np

from localglm.arrays import AnyArray
from localglm.backends.base import Device
from localglm.engine.devices import DeviceChoice, opened
from localglm.gguf import open_model
from localglm.model.graph import Model
from localglm.model.inventory import survey
from localglm.model.load import load_surveyed
from localglm.ops.error import Tolerance, measure
from localglm.ops.spec import Precision
from localglm.paths import demo_model

KNOWN = Path(__file__).with_name("selftest_logits.npy")
IDS = tuple((17 * i * i + 5 * i + 40) % 2900 for i in range(24))
_CHUNKS = (0, 7, 8, 9, 24)
"""A chunk, two single tokens and a longer chunk, so that state is carried in both ways."""
_STRIDE = 16
_TOLERANCES = {
    # Stored logits are float32; every layer adds the rounding of its activations.
    Precision.FLOAT64: Tolerance(1e-12, 1e-6),
    Precision.FLOAT32: Tolerance(1e-8, 1e-3),
    Precision.EIGHT_BIT: Tolerance(1e-2, 0.3),
}


def logits(device: Device) -> AnyArray:
    """Return every sixteenth logit of every position, computed with the device's fused ops."""
    with open_model(demo_model()) as file:
        geometry, weights = load_surveyed(file, survey(file), device)
        model = Model(geometry, weights, device)
        state = model.new_state(context=len(IDS), cache_type="f32")
        rows = []
        for start, stop in pairwise(_CHUNKS):
            made = model.advance(state, IDS[start:stop], logits="all").logits
            assert made is not None
            rows.append(np.array(made[:, ::_STRIDE], np.float32))
        return np.concatenate(rows)


def logits_over(device: Device, precision: Precision) -> float:
    """Return how many times the logits exceed their tolerance."""
    want = np.load(KNOWN, allow_pickle=False).astype(np.float64)
    return measure({"logits": logits(device)}, {"logits": want}).over(_TOLERANCES[precision])


if __name__ == "__main__":
    with opened(DeviceChoice("reference")) as reference:
        np.save(KNOWN, logits(reference))
