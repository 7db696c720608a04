"""What a model of sequences must do so that one can decode from it: read on, and say what may come next."""

from typing import Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor


@runtime_checkable
class State(Protocol):
    """What a model remembers of the tokens it has read; each row is a sequence of its own."""

    def rows(self, index: Int[Tensor, " kept"]) -> "State":
        """The memories of these rows in this order, as a copy; a row may be asked for more than once."""
        ...


@runtime_checkable
class Reader(Protocol):
    """p(x_t | x_1 … x_{t−1}), one step after the other, whatever stands behind it: n-grams, an RNN, a transformer.

    `window` is how many tokens it can hold in mind; None when that is no limit.
    """

    @property
    def window(self) -> int | None: ...

    def read(
        self, tokens: Int[Tensor, "batch time"], state: State | None = None
    ) -> tuple[Float[Tensor, "batch vocabulary"], State]:
        """Logits of the token after these, and what to remember; a state that was handed in is used up."""
        ...
