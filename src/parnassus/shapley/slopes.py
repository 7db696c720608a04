"""A model with its gradients: what it says of an input, and how each output changes with each feature."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from jaxtyping import Float, Num
from torch import Tensor, nn

from parnassus.shapley.model import ModelError, answer_rows, placed
from parnassus.shapley.portions import at_once

TOGETHER = 2**22
"""Numbers that the gradients of one call may have: inputs × outputs × features."""
NO_GRADIENTS = (
    "the model's answers have no gradients: it computes outside torch, detaches them or forbids them; "
    "use explain, which only asks"
)


@dataclass(frozen=True)
class Slopes:
    """f and ∂f, in float64, for inputs of any shape, whose features are counted as if flattened.

    A module is asked where its weights are and as in evaluation; its rows must not know of each other.
    """

    model: Callable[[Tensor], Tensor]

    def answers(self, z: Float[Tensor, "count *shape"]) -> Float[Tensor, "count outputs"]:
        """f(z) of many inputs."""
        parts = [self._answered(some).to(z.device, torch.float64) for some in z.split(self.at_once(z, len(z)))]
        return torch.cat(parts)

    def __call__(self, z: Float[Tensor, "count *shape"]) -> Float[Tensor, "count outputs features"]:
        """∂f_o/∂z_j of many inputs, by one backward pass for each output."""
        return torch.cat([self._pulled_back(some) for some in z.split(self.at_once(z, len(z)))])

    def at_once(self, z: Float[Tensor, "inputs *shape"], count: int) -> int:
        """How many of `count` inputs like the first of z to ask about at once; their gradients need as much again."""
        return max(1, at_once(self._answered, z, count) // 2)

    def _answered(self, z: Float[Tensor, "count *shape"]) -> Float[Tensor, "count outputs"]:
        with torch.no_grad(), evaluating(self.model):
            return answer_rows(self.model(self.at_weights(z)), len(z))

    def _pulled_back(self, z: Float[Tensor, "count *shape"]) -> Float[Tensor, "count outputs features"]:
        with torch.enable_grad(), evaluating(self.model):
            inputs = self.at_weights(z).detach().requires_grad_()
            try:
                answer = self.model(inputs)
            except RuntimeError as error:
                if "requires grad" in str(error):  # it made an array of its input
                    raise ModelError(NO_GRADIENTS) from error
                raise
            return pulled_back(answer_rows(answer, len(z)), inputs).to(z.device)

    def at_weights(self, z: Float[Tensor, "count *shape"]) -> Float[Tensor, "count *shape"]:
        """Where the module has its weights, and of their precision."""
        parameter = next(self.model.parameters(), None) if isinstance(self.model, nn.Module) else None
        return z if parameter is None else placed(z, parameter)

    def precision(self, z: Float[Tensor, "count *shape"]) -> float:
        """The distance of 1 from the next number that the model can tell apart."""
        return torch.finfo(self.at_weights(z[:1]).dtype).eps


def pulled_back(
    answers: Float[Tensor, "count outputs"], inputs: Float[Tensor, "count *shape"]
) -> Float[Tensor, "count outputs features"]:
    """The gradient of every output; that of an output which does not ask the input is 0."""
    if not answers.requires_grad:
        raise ModelError(NO_GRADIENTS)
    last = answers.shape[1] - 1
    each = [
        torch.autograd.grad(answers[:, output].sum(), inputs, retain_graph=output < last, allow_unused=True)[0]
        for output in range(last + 1)
    ]
    slopes = torch.stack([torch.zeros_like(inputs) if slope is None else slope for slope in each], 1).flatten(2)
    if not bool(slopes.isfinite().all()):
        row, output, feature = (~slopes.isfinite()).nonzero()[0].tolist()
        raise ModelError(
            f"the gradient of output {output} by feature {feature} is {float(slopes[row, output, feature])} at "
            f"{float(inputs.detach()[row].flatten()[feature]):.6g}: it must be finite between baseline and input"
        )
    return slopes.double()


@contextmanager
def evaluating(model: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """A module is as in evaluation meanwhile, and then it and each of its parts as they were."""
    modes = [(part, part.training) for part in model.modules()] if isinstance(model, nn.Module) else []
    for part, _ in modes:
        part.training = False
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training


def demand_inputs(x: Num[Tensor, "rows *shape"], background: Num[Tensor, "others *shape_too"]) -> None:
    """Refuse what has no gradients, and baselines that are not inputs."""
    for name, inputs in (("x", x), ("background", background)):
        if not inputs.is_floating_point():
            raise ValueError(
                f"gradients need inputs that are real numbers; {name} is {inputs.dtype}: explain what is made of "
                "them, an embedding for one"
            )
    if x.ndim < 2 or x.shape[1:] != background.shape[1:] or not len(x) or not len(background):
        raise ValueError(
            f"x and background must be rows of one shape; got {tuple(x.shape)} and {tuple(background.shape)}"
        )
