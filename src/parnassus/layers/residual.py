"""Residual connections: a block corrects its input instead of replacing it (Diehl sec. 1.6, Zhao sec. 8)."""

from jaxtyping import Float
from torch import Tensor, nn

from parnassus.layers.activations import Activation, identity, relu
from parnassus.layers.dense import Dense, Initialiser, uniform_by_fan_in


class Residual(nn.Module):
    """y = σ(s(x) + F(x)) with body F and shortcut s, by default y = x + F(x) (Diehl sec. 1.6).

        ∂y/∂x = I + ∂F/∂x

    F is left with the residual, the difference between what is wanted and the input; F = 0 gives the identity. Where
    F changes the shape, pass a shortcut that changes it too, such as a linear map or a 1×1 convolution.
    """

    def __init__(
        self, body: nn.Module, shortcut: nn.Module | None = None, *, activation: Activation = identity
    ) -> None:
        super().__init__()
        self.body = body
        self.shortcut = nn.Identity() if shortcut is None else shortcut
        self.activation = activation

    def forward(self, x: Float[Tensor, "batch *example"]) -> Float[Tensor, "batch *output"]:
        carried, correction = self.shortcut(x), self.body(x)
        if carried.shape != correction.shape:
            raise ValueError(
                "shortcut and body must give the same shape; got "
                f"{(*carried.shape[1:],)} and {(*correction.shape[1:],)} from an example of shape {(*x.shape[1:],)}"
            )
        return self.activation(carried + correction)


def residual_mlp(
    inputs: int,
    outputs: int,
    *,
    width: int,
    blocks: int,
    activation: Activation = relu,
    initialise: Initialiser = uniform_by_fan_in,
) -> nn.Sequential:
    """A dense layer, `blocks` blocks h + W₂ᵀ σ(W₁ᵀ h + b₁) + b₂ of one width, and a dense layer (Diehl sec. 1.6)."""
    if blocks < 0:
        raise ValueError(f"blocks must not be negative; got blocks={blocks}")

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
