"""The interface that a sequence model needs for decoding: incremental next-token logits with a state."""

from typing import Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy


@runtime_checkable
class State(Protocol):
    """The state of a model after the tokens read so far; each row is an independent sequence."""

    def rows(self, index: Int[Tensor, " kept"]) -> "State":
        """A copy of the state with these rows in this order; a row may occur more than once."""
        ...


@runtime_checkable
class AutoregressiveModel(Protocol):
    """p(x_t | x_1 … x_{t−1}), computed incrementally: an n-gram model, a recurrent network, a transformer.

    `window` is the largest number of tokens in the context; None if there is no limit.
    """

    @property
    def window(self) -> int | None: ...

    def read(
        self, tokens: Int[Tensor, "batch time"], state: State | None = None
    ) -> tuple[Float[Tensor, "batch vocabulary"], State]:
        """Logits of the token after these, and the new state; the given state must not be used again."""
        ...


def next_token_nll(
    logits: Float[Tensor, "batch time vocabulary"], tokens: Int[Tensor, "batch time_and_one"]
) -> Float[Tensor, "batch time"]:
    """−log p(x_{t+1} | x_1 … x_t) of each token but the first, from the logits at all positions but the last."""
    nll = cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), reduction="none")
    return nll.view(len(tokens), -1)
