"""The optimiser: orthogonalised momentum (Muon) for matrices, AdamW for everything else.

Matrices of one shape are stacked and orthogonalised together. Updates are scaled so that both
halves move parameters by a similar root mean square, so one learning rate serves both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from training.model.parameters import ROUTER_BIAS, Params

_STEPS = ((4.0848, -6.8946, 2.9270), (3.9505, -6.3029, 2.6377), (3.7418, -5.5913, 2.3037),
          (2.8769, -3.1427, 1.2046), (2.8366, -3.0525, 1.2012))  # fmt: skip
_EMBEDDINGS = ("token_embd.weight", "output.weight")
_PLAIN = ("ssm_conv1d", "ape.weight", "hc_", "ffn_gate_inp", "ssm_beta", "indexer.proj")


def is_matrix(name: str, value: Tensor) -> bool:
    """Whether a parameter is a map between wide spaces, for which Muon is meant."""
    return value.dim() > 1 and name not in _EMBEDDINGS and not any(s in name for s in _PLAIN)


def _factor(name: str, value: Tensor) -> float:
    """Learning rate of a parameter outside Muon, over the common one."""
    if name == "token_embd.weight":
        return 2.0
    return 1.0 if value.dim() == 1 or "conv1d" in name or name in _EMBEDDINGS else 0.25


def orthogonalised(update: Tensor) -> Tensor:
    """Push the singular values of matrices [b, m, n] towards 1 by five odd polynomials."""
    x = update.bfloat16() if update.is_cuda else update
    turned = x.shape[-2] > x.shape[-1]
    x = x.mT if turned else x
    x = x / (x.norm(dim=(-2, -1), keepdim=True) * 1.01 + 1e-7)
    for a, b, c in _STEPS:
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return (x.mT if turned else x).to(update.dtype)


@dataclass(slots=True)
class Group:
    """Matrices of one shape with their momentum, stacked [b, m, n]."""

    names: list[str]
    shape: tuple[int, int]
    momentum: Tensor


@dataclass(slots=True)
class Optimiser:
    """Both halves. ``step`` reads ``.grad`` of the parameters."""

    params: Params
    decay: float
    momentum: float
    groups: list[Group] = field(init=False)
    adam: torch.optim.AdamW = field(init=False)

    def __post_init__(self) -> None:
        """Sort the parameters into the halves."""
        by_shape: dict[tuple[int, int], list[str]] = {}
        rest: list[str] = []
        for name, value in self.params.items():
            if name.endswith(ROUTER_BIAS):
                continue
            if is_matrix(name, value):
                m, n = value.shape[-2:]
                by_shape.setdefault((m, n), []).append(name)
            else:
                rest.append(name)
        self.groups = [
            Group(names, shape, self._stacked([self.params[n].detach() for n in names]) * 0)
            for shape, names in by_shape.items()
        ]
        by_factor: dict[float, list[Tensor]] = {}
        for name in rest:
            by_factor.setdefault(_factor(name, self.params[name]), []).append(self.params[name])
        self.adam = torch.optim.AdamW(
            [{"params": group, "factor": factor} for factor, group in by_factor.items()],
            lr=0.0, betas=(0.9, 0.98), eps=1e-10, weight_decay=0.0, fused=self._is_cuda(),
        )  # fmt: skip

    def _is_cuda(self) -> bool:
        return next(iter(self.params.values())).is_cuda

    @staticmethod
    def _stacked(values: list[Tensor]) -> Tensor:
        return torch.cat([v.reshape(-1, *v.shape[-2:]) for v in values])

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Move all parameters by one step and drop their gradients."""
        for part in self.adam.param_groups:
            part["lr"] = rate * part["factor"]
        self.adam.step()
        for group in self.groups:
            values = [self.params[n] for n in group.names]
            grads = self._stacked([v.grad for v in values])  # type: ignore[misc]
            group.momentum.lerp_(grads, 1 - self.momentum)
            update = orthogonalised(torch.lerp(grads, group.momentum, self.momentum))
            update = update * (0.2 * math.sqrt(max(group.shape)))
            parts = update.split([v.numel() // v.shape[-1] // v.shape[-2] for v in values])
            targets = [v.detach() for v in values]
            torch._foreach_mul_(targets, 1 - rate * self.decay)
            torch._foreach_add_(
                targets, [u.reshape(v.shape) for u, v in zip(parts, values, strict=True)],
                alpha=-rate,
            )  # fmt: skip
        for value in self.params.values():
            value.grad = None


@torch.no_grad()
def balance(params: Params, loads: dict[int, Tensor], rate: float) -> None:
    """Move each router's selection bias against the load: no loss term is needed."""
    for layer, load in loads.items():
        bias = params[f"blk.{layer}.{ROUTER_BIAS}"]
        bias += rate * torch.sign(load.mean() - load)
