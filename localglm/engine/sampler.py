"""Choosing the next token from a row of logits.

The order is fixed: penalties, temperature, top-k, top-p, min-p, one draw. Probabilities are float64
on candidates sorted by logit, ties to the lower id. Draw number i of a request depends on its seed
and on i alone, so the same seed gives the same text however the prompt was cut or the steps were
grouped.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import numpy as np

from localglm.engine.checks import check_sampling
from localglm.errors import NumericFaultError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from localglm.arrays import F32, F64, I64
    from localglm.engine.protocol import Sampling

_HEADS = (1024, 16384)


class Sampler:
    """The chooser of one request."""

    def __init__(self, sampling: Sampling) -> None:
        check_sampling(sampling)
        self.sampling = sampling
        self.seed = secrets.randbits(63) if sampling.seed is None else sampling.seed
        self._draws = 0
        self._seen: set[int] = set()
        self._counts: dict[int, int] = {}

    def note_prompt(self, ids: Iterable[int]) -> None:
        """Tell which tokens the repetition penalty finds in the prompt."""
        self._seen.update(ids)

    def choose(self, logits: F32) -> int:
        """Return the next token.

        Shapes: logits [n].
        Raises: NumericFaultError when a logit is not finite.
        """
        scores = self._penalised(logits)
        token = int(np.argmax(scores)) if self.sampling.temperature == 0.0 else self._draw(scores)
        self._seen.add(token)
        self._counts[token] = self._counts.get(token, 0) + 1
        return token

    def _penalised(self, logits: F32) -> F64:
        """Apply the penalties: repetition for prompt and answer, the others for the answer."""
        if not bool(np.isfinite(logits).all()):
            bad = int(np.flatnonzero(~np.isfinite(logits))[0])
            raise NumericFaultError(
                f"the logit of token id {bad} is {logits[bad]}",
                why="a weight or an intermediate value is not finite",
                try_="compare the checksum of the file with the published one",
            )
        scores = logits.astype(np.float64)
        chosen = self.sampling
        if chosen.repetition_penalty != 1.0 and self._seen:
            ids = np.fromiter(self._seen, np.int64, len(self._seen))
            ids = ids[ids < scores.size]
            values, factor = scores[ids], chosen.repetition_penalty
            scores[ids] = np.where(values > 0, values / factor, values * factor)
        if chosen.presence_penalty or chosen.frequency_penalty:
            for token, count in self._counts.items():
                scores[token] -= chosen.presence_penalty + chosen.frequency_penalty * count
        return scores

    def _draw(self, scores: F64) -> int:
        uniform = self._uniform()
        for size in _HEADS:
            head = max(size, self.sampling.top_k or 0)
            if head < scores.size:
                token = draw(scores, self.sampling, uniform, head)
                if token is not None:
                    return token
        token = draw(scores, self.sampling, uniform, scores.size)
        assert token is not None, "the whole vocabulary always decides"
        return token

    def _uniform(self) -> float:
        """Return the next draw in [0, 1): the top 53 bits of that output of PCG64(seed)."""
        generator = np.random.PCG64(self.seed)
        generator.advance(self._draws)
        self._draws += 1
        return float(int(generator.random_raw()) >> 11) * 2.0**-53


def best(scores: F64, count: int) -> I64:
    """Return the ids of the ``count`` largest scores, best first, ties to the lower id.

    Shapes: scores [n] -> [min(count, n)].
    """
    if count >= scores.size:
        return np.argsort(-scores, kind="stable")
    edge = np.partition(scores, scores.size - count)[scores.size - count]
    ids = np.flatnonzero(scores >= edge)
    return ids[np.argsort(-scores[ids], kind="stable")][:count]


def draw(scores: F64, sampling: Sampling, uniform: float, head: int) -> int | None:
    """Return the token ``uniform`` falls on, or None when the ``head`` best do not decide it.

    Sorting a whole vocabulary costs more than a small model's step, so a short head is tried first;
    where it decides, the result is the one of ``head = n``.

    Shapes: scores [n].
    Math: w = exp((score - max) / temperature); top-k keeps the k best, top-p the shortest head
    whose share of their sum reaches p, min-p what weighs at least p times the best; then the first
    id whose running sum exceeds uniform * (sum of what is kept).
    """
    ids = best(scores, head)[: sampling.top_k]
    with np.errstate(over="ignore", under="ignore"):
        weights = np.exp((scores[ids] - scores[ids[0]]) / sampling.temperature)
        every = np.exp((scores - scores[ids[0]]) / sampling.temperature)
    whole = head >= scores.size or ids.size == sampling.top_k
    total = float(weights.sum() if sampling.top_k is not None else every.sum())
    edges = np.cumsum(weights)
    count = _kept(weights, edges, total, sampling)
    if count is None:
        if not whole:
            return None
        count = ids.size
    elif sampling.top_p is not None or sampling.min_p is not None:
        total = float(edges[count - 1])
    place = int(np.searchsorted(edges[:count], uniform * total, side="right"))
    if place == ids.size and not whole:
        return None
    return int(ids[min(place, count - 1)])


def _kept(weights: F64, edges: F64, total: float, sampling: Sampling) -> int | None:
    """Return how many candidates top-p and min-p keep; None when it could be more than these."""
    if sampling.top_p is None and sampling.min_p is None:
        return int(weights.size)
    count: int | None = None
    if sampling.top_p is not None and edges[-1] >= sampling.top_p * total:
        count = int(np.argmax(edges >= sampling.top_p * total)) + 1
    if sampling.min_p is not None:
        strong = int(np.count_nonzero(weights >= sampling.min_p))
        if count is not None or strong < weights.size:
            count = min(strong, weights.size if count is None else count)
    return count
