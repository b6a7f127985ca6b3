"""The process behind a stream: a configuration comes in, batches go out until the pipe closes."""

from __future__ import annotations

import pickle
import sys

from training.data.stream import BatchMaker


def main() -> None:
    """Read the configuration and the place of this worker, then write its batches."""
    config, place = pickle.load(sys.stdin.buffer)  # noqa: S301 - from our own parent
    maker, out = BatchMaker(config), sys.stdout.buffer
    number = config.start + place
    while config.stop is None or number < config.stop:
        pickle.dump(maker.batch(number), out, pickle.HIGHEST_PROTOCOL)
        out.flush()
        number += config.workers


if __name__ == "__main__":
    main()
