"""Softmax (multinomial logistic) regression, fitted by Newton's method (Zhao sec. 4)."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.arrays import accepts_arrays
from parnassus.errors import check_non_negative
from parnassus.layers.dense import affine
from parnassus.layers.linear_models.linear_regression import append_ones, check_regression_data, minimum_norm_solution
from parnassus.losses.classification import (
    cross_entropy,
    one_hot,
    soft_cross_entropy,
    softmax,
    softmax_jacobian,
)


@dataclass(frozen=True)
class SoftmaxRegression:
    """o = Wᵀx + b, ŷ = softmax(o): class probabilities from a linear map (Zhao sec. 4).

    W is features × classes as in `parnassus.layers.dense`; the notes and torch store the transpose. The same model for
    mini-batch training is `dense_classifier(features, classes, hidden=())`.
    """

    weight: Float[Tensor, "features classes"]
    bias: Float[Tensor, " classes"]

    @classmethod
    @accepts_arrays
    def fit(
        cls, x: Float[Tensor, "batch features"], labels: Int[Tensor, " batch"], *, classes: int, penalty: float = 0.0
    ) -> "SoftmaxRegression":
        """Maximum likelihood by Newton's method; `penalty` λ adds λ/2 ‖W‖² to the mean cross-entropy.

        Without a penalty, linearly separable classes have no maximum-likelihood weights: they diverge.
        """
        check_non_negative(penalty=penalty)
        check_regression_data(x, labels)
        y = one_hot(labels, classes).double()
        theta = newton(append_ones(x).double(), y, penalty).to(x.dtype)
        return cls(theta[:-1], theta[-1])

    def logits(self, x: Float[Tensor, "batch features"]) -> Float[Tensor, "batch classes"]:
        return affine(x, self.weight, self.bias)

    @accepts_arrays
    def probabilities(self, x: Float[Tensor, "batch features"]) -> Float[Tensor, "batch classes"]:
        return softmax(self.logits(x))

    @accepts_arrays
    def predict(self, x: Float[Tensor, "batch features"]) -> Int[Tensor, " batch"]:
        """The class of the largest logit."""
        return self.logits(x).argmax(-1)

    def loss(self, x: Float[Tensor, "batch features"], labels: Int[Tensor, " batch"]) -> Float[Tensor, ""]:
        """Mean cross-entropy, the mean negative log-likelihood of the labels."""
        return cross_entropy(self.logits(x), labels).mean()


def cross_entropy_gradient(
    logits: Float[Tensor, "*batch classes"], probabilities: Float[Tensor, "*batch classes"]
) -> Float[Tensor, "*batch classes"]:
    """∂l/∂o = softmax(o) − y of l = log Σ_k exp(o_k) − Σ_j y_j o_j, for labels y that sum to 1 (Zhao sec. 4)."""
    return softmax(logits) - probabilities


def softmax_regression_gradient(
    theta: Float[Tensor, "features classes"],
    x: Float[Tensor, "batch features"],
    probabilities: Float[Tensor, "batch classes"],
) -> Float[Tensor, "features classes"]:
    """Xᵀ(softmax(XΘ) − Y) / n, the gradient of the mean cross-entropy (Zhao sec. 4)."""
    return x.T @ cross_entropy_gradient(x @ theta, probabilities) / len(x)


def softmax_regression_hessian(
    theta: Float[Tensor, "features classes"], x: Float[Tensor, "batch features"]
) -> Float[Tensor, "features classes features classes"]:
    """1/n Σ_i (x_i x_iᵀ) ⊗ (diag(p_i) − p_i p_iᵀ) ⪰ 0: the mean cross-entropy is convex in Θ."""
    return torch.einsum("ni,ncd,nj->icjd", x, softmax_jacobian(x @ theta), x) / len(x)


def newton(
    x: Float[Tensor, "batch features"],
    y: Float[Tensor, "batch classes"],
    penalty: float,
    *,
    steps: int = 50,
    tolerance: float = 1e-9,
) -> Float[Tensor, "features classes"]:
    """Θ by Newton steps from 0; the last row of Θ, the bias, is not penalised.

    Adding one vector to every class leaves the softmax unchanged, so the Hessian is singular; the minimum-norm solution
    of H Δ = G keeps Σ_classes Θ = 0. A step that increases the objective is halved.
    """
    features, classes = x.shape[1], y.shape[1]
    decay = x.new_full((features, classes), penalty)
    decay[-1] = 0.0

    def objective(theta: Tensor) -> Tensor:
        loss = soft_cross_entropy(x @ theta, y).mean()
        return loss + (decay * theta.square()).sum() / 2

    theta = torch.zeros_like(decay)
    for _ in range(steps):
        gradient = softmax_regression_gradient(theta, x, y) + decay * theta
        hessian = softmax_regression_hessian(theta, x).reshape(features * classes, -1) + torch.diag(decay.flatten())
        step = minimum_norm_solution(hessian, gradient.reshape(-1)).reshape_as(theta)
        while objective(theta - step) > objective(theta) and float(step.abs().max()) > tolerance:
            step = step / 2
        theta = theta - step
        if float(step.abs().max()) <= tolerance * max(1.0, float(theta.abs().max())):
            return theta
    raise ValueError(
        "Newton's method did not converge: classes may be linearly separable, which needs penalty > 0; "
        f"got penalty={penalty}"
    )
