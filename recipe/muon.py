"""Muon, with its orthogonalisation in float32."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

# Coefficients of the quintic Newton-Schulz step, from Keller Jordan, "Muon: An optimizer for hidden layers in
# neural networks" (2024), https://kellerjordan.github.io/posts/muon/.
_A, _B, _C = 3.4445, -4.7750, 2.0315


def orthogonalise(matrix: torch.Tensor, steps: int = 5) -> torch.Tensor:
    """Return a matrix of the same row and column space whose singular values are all near 1."""
    tall = matrix.shape[0] > matrix.shape[1]
    x: torch.Tensor = matrix.T if tall else matrix
    x = x / (x.norm() + 1e-7)
    for _ in range(steps):
        gram = x @ x.T
        x = _A * x + (_B * gram + _C * gram @ gram) @ x
    return x.T if tall else x


class Muon(torch.optim.Optimizer):
    """Nesterov momentum whose update is orthogonalised; for matrices only.

    torch's own Muon runs these steps in bfloat16, whose speed depends on the processor far more than
    float32's does.
    """

    def __init__(
        self,
        params: Iterable[torch.nn.Parameter],
        lr: float = 0.02,
        momentum: float = 0.95,
        weight_decay: float = 0.05,
    ) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Update every parameter that has a gradient."""
        for group in self.param_groups:
            lr, momentum = group["lr"], group["momentum"]
            for parameter in group["params"]:
                if parameter.grad is not None:
                    state: dict[str, Any] = self.state[parameter]
                    average = state.setdefault("momentum", torch.zeros_like(parameter))
                    average.lerp_(parameter.grad, 1 - momentum)
                    update = orthogonalise(parameter.grad.lerp(average, momentum))
                    # A tall matrix gets a longer step, so that every output changes by about as much.
                    scale = max(1.0, parameter.shape[0] / parameter.shape[1]) ** 0.5
                    parameter.mul_(1 - lr * group["weight_decay"]).add_(update, alpha=-lr * scale)
