"""What the data look like and how fast they come.

Run: ``python -m training.data.measure`` for the table of row lengths on one core;
``--show lookup`` prints conversations of a kind instead.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter

import numpy as np

from training.data.conversation import EFFORTS
from training.data.kinds import BY_NAME
from training.data.pick import Pick, Split, Want
from training.data.stream import BatchMaker, Phase, StreamConfig
from training.data.topics import TOPICS
from training.data.vocabulary import PADDING, Encoder

_LENGTHS = (512, 1024, 2048, 4096, 8192, 16_384)


def table(batches: int) -> None:
    """Print speed, padding, loss share and the largest kinds by tokens, by row length."""
    print("| row | thousand tokens/s | padding | with loss | kinds by tokens, percent |")
    print("| --- | --- | --- | --- | --- |")
    for length in _LENGTHS:
        maker = BatchMaker(StreamConfig(phases=(Phase(0, {length: 1.0}),)))
        maker.batch(0)
        start = time.process_time()
        made = [maker.batch(number) for number in range(1, batches + 1)]
        seconds = time.process_time() - start
        total = sum(batch.tokens.size for batch in made)
        padding = sum(int((batch.tokens == PADDING).sum()) for batch in made) / total
        taught = sum(int((batch.loss > 0).sum()) for batch in made) / total
        sizes: Counter[str] = Counter()
        for batch in made:
            for row, names in zip(batch.segment, batch.kinds, strict=True):
                for name, size in zip(names, np.bincount(row).tolist(), strict=True):
                    sizes[name] += size
        shares = ", ".join(f"{name} {100 * n / total:.0f}" for name, n in sizes.most_common(6))
        speed = total / seconds / 1000
        print(f"| {length} | {speed:.0f} | {padding:.1%} | {taught:.1%} | {shares} |")


def show(name: str, count: int, room: int) -> None:
    """Print conversations of one kind at every level."""
    measure = Encoder().count
    for place in range(count):
        effort = EFFORTS[place % len(EFFORTS)]
        want = Want(Split.TRAIN, effort, TOPICS[place % len(TOPICS)], room, measure)
        made = BY_NAME[name].make(Pick(f"show {place}"), want)
        print(f"--- {made.kind}, {made.topic}, {effort}")
        for turn in made.turns:
            thought = f"[{turn.thought}] " if turn.thought else ""
            calls = "".join(f" {call.name}{call.arguments}" for call in turn.calls)
            print(f"{turn.role}: {thought}{turn.content}{calls}")


def main() -> None:
    """Print the table or conversations."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", choices=sorted(BY_NAME))
    parser.add_argument("--count", type=int, default=8)
    parser.add_argument("--room", type=int, default=300)
    parser.add_argument("--batches", type=int, default=6)
    options = parser.parse_args()
    if options.show:
        show(options.show, options.count, options.room)
    else:
        table(options.batches)


if __name__ == "__main__":
    main()
