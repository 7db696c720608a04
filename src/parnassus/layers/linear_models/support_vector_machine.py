"""Linear and Gaussian support vector machines, trained by gradients in the primal (Diehl sec. 5.2).

The notes only mention the model. Random Fourier features approximate the Gaussian kernel, so that no kernel matrix is
needed (Rahimi and Recht 2007).
"""

from math import sqrt

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from parnassus.arrays import accepts_arrays
from parnassus.errors import check_non_negative


def multiclass_hinge(scores: Float[Tensor, "batch classes"], labels: Int[Tensor, " batch"]) -> Float[Tensor, " batch"]:
    """max(0, 1 + max_{j≠y} s_j − s_y): 0 if the label's score leads by a margin of 1 (Crammer and Singer 2001)."""
    correct = scores.gather(1, labels[:, None])
    others = scores.scatter(1, labels[:, None], -torch.inf)
    return (1 + others.amax(1) - correct[:, 0]).clamp(min=0)


class RandomFourierFeatures(nn.Module):
    """Features whose inner products approximate the Gaussian kernel exp(−γ ‖x − y‖²) (Rahimi and Recht 2007).

        φ(x) = √(2/D) cos(W x + b),   W_ij ~ N(0, 2γ),   b_i uniform on [0, 2π]
        φ(x)·φ(y) → exp(−γ ‖x − y‖²) as D grows, with an error of order 1/√D

    W and b are sampled once and not trained.
    """

    frequencies: Tensor
    phases: Tensor

    def __init__(self, inputs: int, num_features: int, *, gamma: float) -> None:
        super().__init__()
        if inputs < 1 or num_features < 1 or not gamma > 0:
            raise ValueError(
                "inputs, num_features and gamma must be positive; "
                f"got inputs={inputs}, num_features={num_features}, gamma={gamma}"
            )
        self.register_buffer("frequencies", sqrt(2 * gamma) * torch.randn(num_features, inputs))
        self.register_buffer("phases", 2 * torch.pi * torch.rand(num_features))

    def forward(self, x: Float[Tensor, "batch inputs"]) -> Float[Tensor, "batch features"]:
        return sqrt(2 / len(self.phases)) * torch.cos(x @ self.frequencies.T + self.phases)


class SupportVectorMachine(nn.Module):
    """A linear map of features, trained with the multiclass hinge loss (Diehl sec. 5.2).

        s = V φ(x) + c,   loss = 1/n Σ_i max(0, 1 + max_{j≠y_i} s_j − s_{y_i}) + λ/2 ‖V‖²

    φ is the identity for the linear machine and `RandomFourierFeatures` for the Gaussian kernel. It predicts classes,
    not probabilities.
    """

    def __init__(self, features: nn.Module, outputs: int, classes: int, *, penalty: float = 1e-4) -> None:
        super().__init__()
        check_non_negative(penalty=penalty)
        self.features = features
        self.scores = nn.Linear(outputs, classes)
        self.penalty = penalty

    def forward(self, x: Float[Tensor, "batch *example"]) -> Float[Tensor, "batch classes"]:
        scores: Tensor = self.scores(self.features(x.flatten(1)))
        return scores

    def loss(self, x: Float[Tensor, "batch *example"], y: Int[Tensor, " batch"]) -> Float[Tensor, ""]:
        """Mean hinge loss plus the penalty on the weights."""
        return multiclass_hinge(self(x), y).mean() + self.penalty / 2 * self.scores.weight.square().sum()

    @accepts_arrays
    @torch.no_grad()
    def predict(self, x: Float[Tensor, "batch *example"]) -> Int[Tensor, " batch"]:
        """The class of the largest score."""
        scores: Tensor = self(x)
        return scores.argmax(-1)


def linear_svm(inputs: int, classes: int, *, penalty: float = 1e-4) -> SupportVectorMachine:
    """The support vector machine with linear decision boundaries."""
    return SupportVectorMachine(nn.Identity(), inputs, classes, penalty=penalty)


def gaussian_svm(
    inputs: int, classes: int, *, num_features: int = 1_000, gamma: float, penalty: float = 1e-4
) -> SupportVectorMachine:
    """The support vector machine with Gaussian kernel exp(−γ ‖x − y‖²), by random Fourier features."""
    features = RandomFourierFeatures(inputs, num_features, gamma=gamma)
    return SupportVectorMachine(features, num_features, classes, penalty=penalty)
