"""The conditional value function for Gaussian features: unknown features given the known ones (book sec. 17.3)."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from parnassus.probability.distributions.gaussian import Gaussian, eigen_root
from parnassus.probability.distributions.gaussian_conditioning import condition
from parnassus.shapley.attributions.batching import batch_slices, limit_batch_size, max_batch_size
from parnassus.shapley.attributions.model_adapters import Model


@dataclass(frozen=True)
class ConditionalGaussianValue:
    """v(S) = E[f(z) | z_S = x_S] with z Gaussian: unknown features depend on the known ones (book sec. 17.3).

    Mean and covariance are the background's. The expectation is a mean over `num_draws` antithetic samples, exact for
    linear models; its error for other models appears as variance over seeds, see `average_repeats`. Rows must lie in
    the support of the Gaussian, which matters for a singular background.

    >>> value = ConditionalGaussianValue(lambda x: x.sum(1, keepdim=True), torch.randn(50, 3))
    >>> value.players
    3
    """

    model: Model
    background: Float[Tensor, "others features"]
    num_draws: int = 256
    seed: int = 0

    def __post_init__(self) -> None:
        if len(self.background) < 2 or self.num_draws < 2 or self.num_draws % 2:
            raise ValueError(
                "background must be at least two rows, num_draws positive and even; "
                f"got {len(self.background)} rows, num_draws={self.num_draws}"
            )

    @property
    def players(self) -> int:
        return self.background.shape[1]

    def __call__(
        self, x: Float[Tensor, "rows features"], coalitions: Bool[Tensor, "count features"]
    ) -> Float[Tensor, "rows outputs count"]:
        joint = Gaussian(self.background.mean(0), torch.cov(self.background.mT).reshape(self.players, self.players))
        batch_size = max_batch_size(self.model, x, len(x) * len(coalitions) * self.num_draws)
        model = limit_batch_size(self.model, batch_size)
        blocks = []
        for part, row in batch_slices(len(coalitions), len(x), max(1, batch_size // self.num_draws)):
            known = coalitions[part].to(x.device)
            samples = torch.stack([self._sample_unknown(joint, x[row], coalition) for coalition in known])
            outputs = model(samples.flatten(0, 2)).double().unflatten(0, samples.shape[:3])
            blocks.append(outputs.mean(1).flatten(0, 1))
        worths: Tensor = torch.cat(blocks).unflatten(0, (len(coalitions), len(x)))
        return worths.permute(1, 2, 0)

    def _sample_unknown(
        self, joint: Gaussian, x: Float[Tensor, "rows features"], known: Bool[Tensor, " features"]
    ) -> Float[Tensor, "draws rows features"]:
        """Rows with the unknown features sampled from their conditional distribution given the known ones."""
        samples = x.expand(self.num_draws, *x.shape).clone()
        observed = known.nonzero()[:, 0].tolist()
        if len(observed) < self.players:
            rest = condition(joint, x[:, known], observed=observed) if observed else joint
            root = eigen_root(rest.covariance)
            generator = torch.Generator().manual_seed(self.seed)
            noise = torch.randn(self.num_draws // 2, 1, len(root), generator=generator).to(x)
            samples[..., ~known] = rest.mean + torch.cat([noise, -noise]) @ root.mT
        return samples
