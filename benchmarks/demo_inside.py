"""What happens inside a model on held-out conversations: drafts accepted, experts used and reused.

    python -m benchmarks.demo_inside FILE.gguf [--per-kind N]

Prints the share of tokens the draft block guesses as the trunk writes them, experts no token ever
chose, and how often a token's experts are among those a conversation used last: the hits of a
cache of the least recently used kind that holds 10, 25 or 50 % of a layer's experts.
"""

from __future__ import annotations

import argparse
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.demo_questions import perplexity_set
from localglm.backends.base import Buffer, Cells, Device
from localglm.engine.devices import DeviceChoice, opened
from localglm.gguf import open_model
from localglm.model.draft import Draft
from localglm.model.graph import Model
from localglm.model.load import load_model

SHARES = (0.10, 0.25, 0.50)


@dataclass
class Choices:
    """Probe that keeps the experts chosen per layer."""

    device: Device
    is_watching: bool = False
    ids: dict[str, list[np.ndarray]] = field(default_factory=dict)

    def record(self, name: str, value: Buffer) -> None:
        """Keep the experts a layer chose."""
        if name.endswith("router_ids"):
            self.ids.setdefault(name, []).append(np.array(self.device.download(value)))

    def record_cells(self, name: str, cells: Cells) -> None:
        """Attention is not watched."""

    def replacement(self, name: str, first: int, count: int) -> None:
        """Nothing is replaced."""


@dataclass
class Tally:
    """Counts over all conversations."""

    accepted: int = 0
    drafted: int = 0
    used: dict[str, np.ndarray] = field(default_factory=dict)
    hits: dict[float, int] = field(default_factory=lambda: dict.fromkeys(SHARES, 0))
    asked: int = 0


def lru_hits(tokens: np.ndarray, capacity: int) -> int:
    """Return how many choices [t, x] find their expert among the ``capacity`` last used."""
    held: OrderedDict[int, None] = OrderedDict()
    hits = 0
    for row in tokens:
        hits += sum(int(e) in held for e in row)
        for e in row:
            held[int(e)] = None
            held.move_to_end(int(e))
        while len(held) > capacity:
            held.popitem(last=False)
    return hits


def follow(model: Model, ids: Sequence[int], taught: np.ndarray, tally: Tally) -> None:
    """Run one conversation through trunk and draft block and add to the counts."""
    device = model.device
    probe = Choices(device)
    state = model.new_state(context=len(ids) + 1, cache_type="f32")
    out = model.advance(state, ids, logits="none", probe=probe)
    draft = Draft(model, context=len(ids) + 1, cache_type="f32")
    rows = draft.step(ids[1:], device.rows(out.hidden, 0, len(ids) - 1))
    # Row m saw token m + 1 and guesses token m + 2; only what the model itself writes counts.
    guessed = rows.logits[:-1].argmax(axis=1)
    written = np.array(ids[2:])
    counted = taught[2:]
    tally.accepted += int((guessed == written)[counted].sum())
    tally.drafted += int(counted.sum())
    for name, chunks in probe.ids.items():
        chosen = np.concatenate(chunks)
        seen = tally.used.setdefault(name, np.zeros(model.geometry.moe.experts, np.int64))
        np.add.at(seen, chosen.ravel(), 1)
        tally.asked += chosen.size
        for share in SHARES:
            capacity = max(1, round(share * model.geometry.moe.experts))
            tally.hits[share] += lru_hits(chosen, capacity)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Draft acceptance and expert use.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--per-kind", type=int, default=20)
    given = parser.parse_args()
    tally = Tally()
    with open_model(given.file) as file, opened(DeviceChoice("cpu")) as device:
        model = Model(*load_model(file, device), device)
        conversations = perplexity_set(given.per_kind)
        for made in conversations:
            taught = np.frombuffer(bytes(made.taught), np.uint8).astype(bool)
            follow(model, made.ids, taught, tally)
        experts, used = model.geometry.moe.experts, model.geometry.moe.used
    dead = sum(int((seen == 0).sum()) for seen in tally.used.values())
    least = min(float(seen.min() / seen.mean()) for seen in tally.used.values())
    most = max(float(seen.max() / seen.mean()) for seen in tally.used.values())
    print(f"| held-out conversations | {len(conversations)} |")
    share = tally.accepted / tally.drafted
    print(f"| draft 1 accepted | {share:.1%} of {tally.drafted} tokens |")
    print(f"| experts never chosen | {dead} of {experts * len(tally.used)} |")
    print(f"| least and most used expert | {least:.2f} and {most:.2f} of the mean |")
    for share, hits in tally.hits.items():
        chance = round(share * experts) / experts
        print(
            f"| hits of a cache of {share:.0%} | {hits / tally.asked:.1%}"
            f" (blind chance {chance:.1%}, {used} chosen per token) |"
        )


if __name__ == "__main__":
    main()
