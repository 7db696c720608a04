"""Outputs of a model and their gradients with respect to the inputs, in batches."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Num
from torch import Tensor, nn

from parnassus.layers.evaluation_mode import evaluation_mode
from parnassus.shapley.attributions.batching import max_batch_size
from parnassus.shapley.attributions.model_adapters import ModelError, as_output_rows, move_to_weights

MAX_GRADIENT_VALUES = 2**22
"""Maximum number of values in the gradients of one batch: inputs × outputs × features."""
NO_GRADIENTS = (
    "the model's outputs have no gradients: it computes outside torch, detaches them or disables gradients; "
    "use explain, which needs outputs only"
)


@dataclass(frozen=True)
class ModelGradients:
    """f and ∂f in float64, for inputs of any shape; features are counted as if flattened.

    A module runs on the device of its weights and in evaluation mode; its rows must be independent.
    """

    model: Callable[[Tensor], Tensor]

    def outputs(self, z: Float[Tensor, "count *shape"]) -> Float[Tensor, "count outputs"]:
        """f(z) of many inputs."""
        batches = z.split(self.max_batch_size(z, len(z)))
        return torch.cat([self._outputs(batch).to(z.device, torch.float64) for batch in batches])

    def base_values_and_prediction(
        self, x: Float[Tensor, "rows *shape"], background: Float[Tensor, "others *shape"]
    ) -> tuple[Float[Tensor, "rows outputs"], Float[Tensor, "rows outputs"]]:
        """The mean of f(b) over the background, for each row, and f(x)."""
        return self.outputs(background).mean(0).expand(len(x), -1), self.outputs(x)

    def __call__(self, z: Float[Tensor, "count *shape"]) -> Float[Tensor, "count outputs features"]:
        """∂f_o/∂z_j of many inputs, by one backward pass per output."""
        return torch.cat([self._gradients(batch) for batch in z.split(self.max_batch_size(z, len(z)))])

    def max_batch_size(self, z: Float[Tensor, "inputs *shape"], count: int) -> int:
        """Batch size for `count` inputs like the first of z; gradients need as much memory again."""
        return max(1, max_batch_size(self._outputs, z, count) // 2)

    def _outputs(self, z: Float[Tensor, "count *shape"]) -> Float[Tensor, "count outputs"]:
        with torch.no_grad(), evaluation_mode(self.model):
            return as_output_rows(self.model(self.match_weights(z)), len(z))

    def _gradients(self, z: Float[Tensor, "count *shape"]) -> Float[Tensor, "count outputs features"]:
        with torch.enable_grad(), evaluation_mode(self.model):
            inputs = self.match_weights(z).detach().requires_grad_()
            try:
                output = self.model(inputs)
            except RuntimeError as error:
                if self._is_accepted(inputs.detach()):  # so it cannot take inputs with gradients: it uses arrays
                    raise ModelError(NO_GRADIENTS) from error
                raise
            return output_gradients(as_output_rows(output, len(z)), inputs).to(z.device)

    def _is_accepted(self, inputs: Tensor) -> bool:
        try:
            with torch.no_grad():
                self.model(inputs)
        except RuntimeError:
            return False
        return True

    def match_weights(self, z: Float[Tensor, "count *shape"]) -> Float[Tensor, "count *shape"]:
        """The inputs with the device and dtype of the module's weights."""
        parameter = next(self.model.parameters(), None) if isinstance(self.model, nn.Module) else None
        return z if parameter is None else move_to_weights(z, parameter)

    def eps(self, z: Float[Tensor, "count *shape"]) -> float:
        """Machine epsilon of the dtype in which the model computes."""
        return torch.finfo(self.match_weights(z[:1]).dtype).eps


def output_gradients(
    outputs: Float[Tensor, "count outputs"], inputs: Float[Tensor, "count *shape"]
) -> Float[Tensor, "count outputs features"]:
    """The gradient of every output; 0 for an output that does not depend on the input."""
    if not outputs.requires_grad:
        raise ModelError(NO_GRADIENTS)
    last = outputs.shape[1] - 1
    each = [
        torch.autograd.grad(outputs[:, output].sum(), inputs, retain_graph=output < last, allow_unused=True)[0]
        for output in range(last + 1)
    ]
    gradients = torch.stack([torch.zeros_like(inputs) if grad is None else grad for grad in each], 1).flatten(2)
    if not bool(gradients.isfinite().all()):
        row, output, feature = (~gradients.isfinite()).nonzero()[0].tolist()
        raise ModelError(
            "gradients must be finite between baseline and input; the gradient of output "
            f"{output} with respect to feature {feature} is {float(gradients[row, output, feature])} at "
            f"{float(inputs.detach()[row].flatten()[feature]):.6g}"
        )
    return gradients.double()


def check_inputs(x: Num[Tensor, "rows *shape"], background: Num[Tensor, "others *shape_too"]) -> None:
    """Reject inputs without gradients, and baselines of another shape."""
    for name, inputs in (("x", x), ("background", background)):
        if not inputs.is_floating_point():
            raise ValueError(
                f"gradients need floating-point inputs; {name} is {inputs.dtype}: explain what is computed from it, "
                "such as an embedding"
            )
    if x.ndim < 2 or x.shape[1:] != background.shape[1:] or not len(x) or not len(background):
        raise ValueError(
            f"x and background must be rows of one shape; got {tuple(x.shape)} and {tuple(background.shape)}"
        )
