"""Operations and their counterparts in torch, with arguments at which they are smooth."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from parnassus import autodiff as ad
from parnassus.autodiff.derivative_rules import Array, broadcast_to, sum_to_shape

LABELS = np.array([2, 0, 3, 3])


@dataclass(frozen=True)
class Case:
    """`function` and its counterpart in torch, on arguments sampled from ±[0.2, 2], or [0.2, 2] if `positive`."""

    name: str
    function: Callable[..., Any]
    torch_function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    positive: bool = False

    def arguments(self, seed: int = 0) -> list[Array]:
        rng = np.random.default_rng(seed)
        magnitudes = [np.asarray(rng.uniform(0.2, 2.0, shape)) for shape in self.shapes]
        if self.positive:
            return magnitudes
        return [np.asarray(magnitude * rng.choice([-1.0, 1.0], magnitude.shape)) for magnitude in magnitudes]


def pairwise_shapes(name: str, function: Callable[..., Any], torch_function: Callable[..., Any]) -> list[Case]:
    """An operation of two arguments under every kind of broadcasting."""
    shapes = [((3, 4), (3, 4)), ((3, 4), (4,)), ((3, 1), (1, 4)), ((), (2, 3)), ((2, 3), ()), ((1, 3, 4), (2, 1, 4))]
    return [Case(f"{name} {a} {b}", function, torch_function, (a, b)) for a, b in shapes]


CASES = [
    *pairwise_shapes("add", lambda a, b: a + b, lambda a, b: a + b),
    *pairwise_shapes("subtract", lambda a, b: a - b, lambda a, b: a - b),
    *pairwise_shapes("multiply", lambda a, b: a * b, lambda a, b: a * b),
    *pairwise_shapes("divide", lambda a, b: a / b, lambda a, b: a / b),
    *pairwise_shapes("maximum", ad.maximum, torch.maximum),
    Case("negative", lambda x: -x, torch.neg, ((3, 4),)),
    Case("reflected operators", lambda x: 3 - 2.0 / (1 + x * x), lambda x: 3 - 2.0 / (1 + x * x), ((3, 4),)),
    Case("square", lambda x: x**2, lambda x: x**2, ((3, 4),)),
    Case("cube", lambda x: x**3, lambda x: x**3, ((3, 4),)),
    Case("reciprocal", lambda x: x**-1, lambda x: x**-1, ((3, 4),)),
    Case("root", lambda x: x**0.5, torch.sqrt, ((3, 4),), positive=True),
    Case("power", lambda a, b: a**b, lambda a, b: a**b, ((3, 4), (4,)), positive=True),
    Case("exp", ad.exp, torch.exp, ((3, 4),)),
    Case("log", ad.log, torch.log, ((3, 4),), positive=True),
    Case("sin", ad.sin, torch.sin, ((3, 4),)),
    Case("cos", ad.cos, torch.cos, ((3, 4),)),
    Case("tanh", ad.tanh, torch.tanh, ((3, 4),)),
    Case("erf", ad.erf, torch.erf, ((3, 4),)),
    Case("absolute", ad.absolute, torch.abs, ((3, 4),)),
    Case("relu", ad.relu, torch.relu, ((3, 4),)),
    Case("leaky relu", lambda x: ad.leaky_relu(x, 0.1), lambda x: functional.leaky_relu(x, 0.1), ((3, 4),)),
    Case("gelu", ad.gelu, functional.gelu, ((3, 4),)),
    Case("sigmoid", ad.sigmoid, torch.sigmoid, ((3, 4),)),
    Case("softmax", ad.softmax, lambda x: x.softmax(-1), ((3, 4),)),
    Case("log-sum-exp", ad.log_sum_exp, lambda x: x.logsumexp(-1), ((3, 4),)),
    Case(
        "cross-entropy",
        lambda z: ad.cross_entropy(z, LABELS),
        lambda z: functional.cross_entropy(z, torch.from_numpy(LABELS)),
        ((4, 5),),
    ),
    Case(
        "squared error", lambda f: ad.squared_error(f, np.ones((4, 2))), lambda f: ((f - 1) ** 2).sum() / 4, ((4, 2),)
    ),
    Case("matmul", lambda a, b: a @ b, lambda a, b: a @ b, ((3, 4), (4, 2))),
    Case("batched matmul", lambda a, b: a @ b, lambda a, b: a @ b, ((5, 3, 4), (4, 2))),
    Case("matrix-vector product", lambda a, b: a @ b, lambda a, b: a @ b, ((3, 4), (4,))),
    Case("vector-matrix product", lambda a, b: a @ b, lambda a, b: a @ b, ((3,), (3, 4))),
    Case("inner product", lambda a, b: a @ b, lambda a, b: a @ b, ((3,), (3,))),
    Case("transpose", ad.transpose, lambda x: x.mT, ((2, 3, 4),)),
    Case("reshape", lambda x: ad.reshape(x, (4, 3)), lambda x: x.reshape(4, 3), ((2, 6),)),
    Case("row", lambda x: x[1], lambda x: x[1], ((3, 4),)),
    Case("slice", lambda x: x[:, 1:3], lambda x: x[:, 1:3], ((3, 4),)),
    Case("gather", lambda x: x[np.array([0, 2, 0])], lambda x: x[torch.tensor([0, 2, 0])], ((3, 4),)),
    Case("sum", ad.total, torch.sum, ((3, 4),)),
    Case("sum over rows", lambda x: ad.total(x, 0), lambda x: x.sum(0), ((3, 4),)),
    Case("sum over columns", lambda x: ad.total(x, -1), lambda x: x.sum(-1), ((3, 4),)),
    Case("sum over two axes", lambda x: ad.total(x, (0, 2)), lambda x: x.sum((0, 2)), ((2, 3, 4),)),
    Case("mean", ad.mean, torch.mean, ((3, 4),)),
    Case("mean over columns", lambda x: ad.mean(x, 1), lambda x: x.mean(1), ((3, 4),)),
    Case("broadcast_to", lambda x: broadcast_to(x, (2, 3, 4)), lambda x: x.expand(2, 3, 4), ((3, 1),)),
    Case("sum_to_shape", lambda x: sum_to_shape(x, (3, 1)), lambda x: x.sum((0, 2))[:, None], ((2, 3, 4),)),
]
