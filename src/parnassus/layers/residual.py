"""Residual connections (Diehl sec. 1.6, Zhao sec. 8)."""

from jaxtyping import Float
from torch import Tensor, nn

from parnassus.errors import check_non_negative
from parnassus.layers.activations import Activation, identity, relu
from parnassus.layers.dense import Dense, Initialiser, fan_in_uniform


class Residual(nn.Module):
    """y = σ(s(x) + F(x)) with body F and shortcut s, by default y = x + F(x) (Diehl sec. 1.6).

        ∂y/∂x = I + ∂F/∂x

    F learns the residual of the target map and the input; F = 0 gives the identity. Where F changes the shape, pass a
    shortcut with the same output shape, such as a linear map or a 1×1 convolution.

    >>> body = nn.Linear(4, 4)
    >>> _ = nn.init.zeros_(body.weight), nn.init.zeros_(body.bias)
    >>> Residual(body)(torch.arange(4.0)[None]).tolist()
    [[0.0, 1.0, 2.0, 3.0]]
    """

    def __init__(
        self, body: nn.Module, shortcut: nn.Module | None = None, *, activation: Activation = identity
    ) -> None:
        super().__init__()
        self.body = body
        self.shortcut = nn.Identity() if shortcut is None else shortcut
        self.activation = activation

    def forward(self, x: Float[Tensor, "batch *example"]) -> Float[Tensor, "batch *output"]:
        shortcut, residual = self.shortcut(x), self.body(x)
        if shortcut.shape != residual.shape:
            raise ValueError(
                "shortcut and body must have the same output shape; got "
                f"{(*shortcut.shape[1:],)} and {(*residual.shape[1:],)} for examples of shape {(*x.shape[1:],)}"
            )
        return self.activation(shortcut + residual)


def residual_mlp(
    inputs: int,
    outputs: int,
    *,
    width: int,
    blocks: int,
    activation: Activation = relu,
    initialise: Initialiser = fan_in_uniform,
) -> nn.Sequential:
    """Dense layer, `blocks` residual blocks h + W₂ᵀ σ(W₁ᵀ h + b₁) + b₂, dense layer (Diehl sec. 1.6)."""
    check_non_negative(blocks=blocks)

    def body() -> nn.Sequential:
        return nn.Sequential(
            Dense(width, width, activation=activation, initialise=initialise),
            Dense(width, width, initialise=initialise),
        )

    return nn.Sequential(
        Dense(inputs, width, activation=activation, initialise=initialise),
        *(Residual(body()) for _ in range(blocks)),
        Dense(width, outputs, initialise=initialise),
    )
