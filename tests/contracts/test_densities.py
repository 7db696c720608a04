"""The contract of distributions that are not modules: every public class with `sample` or `log_prob`.

Whether samples and density agree is tested with each distribution.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from parnassus import flows, kernels, latent, probability, reinforcement, text

from .checks import (
    Offences,
    check_equal,
    other_default_device,
    seeded,
    tensors_of,
    unchanged,
    unchanged_globals,
    without_shape_checks,
)
from .public_members import check_factories, has_any, public_classes


@dataclass(frozen=True)
class Density:
    """How to build a distribution, to sample it, and the arguments of `log_prob`; in float64 where it has a dtype."""

    build: Callable[[], Any]
    sample: Callable[[Any], Any] | None = None
    log_prob: Callable[[], tuple[Tensor, ...]] | None = None


def vector(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def matrix(*rows: tuple[float, ...]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


COVARIANCE = ((2.0, 0.3), (0.3, 0.5))
TRANSITION = ((0.9, 0.1), (0.4, 0.6))


def points() -> tuple[Tensor, ...]:
    return (matrix((0.3, -1.0), (1.0, 2.0), (0.0, 0.5)),)


def paths() -> tuple[Tensor, ...]:
    return (torch.tensor([[0, 1, 1, 0], [1, 0, 0, 0]]),)


def chain() -> probability.MarkovChain:
    return probability.MarkovChain(vector(0.3, 0.7), matrix(*TRANSITION))


def flow_distribution() -> flows.FlowDistribution:
    flow = flows.Flow(flows.ActNorm(2), flows.GaussianBase((2,))).double().eval()
    return flows.FlowDistribution(flow.requires_grad_(False), (2,))


def mixture() -> probability.GaussianMixture:
    covariances = torch.stack([matrix(*COVARIANCE), torch.eye(2, dtype=torch.float64)])
    return probability.GaussianMixture(vector(0.3, 0.7), matrix((0.0, 1.0), (2.0, -1.0)), covariances)


def generative_classifier() -> probability.GenerativeClassifier:
    x = torch.randn(20, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    model = probability.fit_gaussian_naive_bayes
    return probability.GenerativeClassifier.fit(x, torch.arange(20) % 2, classes=2, model=model)


def sample_paths(x: Tensor, process: kernels.GaussianProcess) -> Any:
    return process.sample(x, 3)


DENSITIES: dict[str, Density] = {
    "flows.FlowDistribution": Density(flow_distribution, lambda each: each.sample((3,)), points),
    "kernels.GaussianProcess": Density(
        lambda: kernels.GaussianProcess(kernels.RBFKernel()), partial(sample_paths, points()[0])
    ),
    "latent.PPCA": Density(
        lambda: latent.PPCA(vector(1.0, 2.0), matrix((1.0,), (0.5,)), torch.tensor(0.3, dtype=torch.float64)),
        lambda each: each.sample(3),
        points,
    ),
    "probability.Gaussian": Density(
        lambda: probability.Gaussian(vector(1.0, -1.0), matrix(*COVARIANCE)), lambda each: each.sample(3), points
    ),
    "probability.GaussianMixture": Density(mixture, lambda each: each.sample(3), points),
    "probability.GenerativeClassifier": Density(generative_classifier, lambda each: each.sample(3), points),
    "probability.HiddenMarkovModel": Density(
        lambda: probability.HiddenMarkovModel(chain(), matrix((0.2, 0.8), (0.6, 0.4))),
        lambda each: each.sample(3, steps=4),
        paths,
    ),
    "probability.InhomogeneousMarkovChain": Density(
        lambda: probability.InhomogeneousMarkovChain(vector(0.3, 0.7), matrix(*TRANSITION).expand(3, 2, 2)),
        lambda each: each.sample(3),
    ),
    "probability.LinearGaussianKernel": Density(
        lambda: probability.LinearGaussianKernel(matrix(*COVARIANCE), 0.5),
        None,
        lambda: (*points(), points()[0].flip(0)),
    ),
    "probability.MarkovChain": Density(chain, lambda each: each.sample(3, steps=4), paths),
    "reinforcement.Categorical": Density(
        lambda: reinforcement.Categorical(matrix((0.0, 1.0), (2.0, 0.0), (0.0, 0.0))),
        lambda each: each.sample(),
        lambda: (torch.tensor([0, 1, 1]),),
    ),
    "reinforcement.DiagonalGaussian": Density(
        lambda: reinforcement.DiagonalGaussian(points()[0], vector(0.1, -0.3)), lambda each: each.sample(), points
    ),
    "text.NGramModel": Density(
        lambda: text.NGramModel.fit(torch.arange(12) % 3, 2, vocabulary=3), None, lambda: (paths()[0][:3],)
    ),
}
BUFFERS = {"reinforcement.ReplayBuffer", "reinforcement.PrioritisedReplayBuffer"}
"""They sample stored transitions and are tested with the agents."""


def test_every_distribution_has_a_factory() -> None:
    plain = {name: each for name, each in public_classes().items() if not issubclass(each, nn.Module)}
    check_factories(
        {name for name, each in plain.items() if has_any(each, *("sample", "log_prob"))} - BUFFERS, DENSITIES
    )


def test_densities_are_finite_in_float64_and_use_the_device_of_the_distribution() -> None:
    offences = Offences()
    for name, case in DENSITIES.items():
        distribution = case.build()
        arguments = case.log_prob() if case.log_prob else ()
        if arguments:
            guard = unchanged_globals(torch_generator=True)
            with offences.record(name, "log_prob"), without_shape_checks(), unchanged(*arguments), guard:
                with other_default_device():
                    result = distribution.log_prob(*arguments)
                assert result.shape == (len(arguments[0]),), f"shape {tuple(result.shape)}"
                assert (result.dtype, result.device.type) == (torch.float64, "cpu"), f"{result.dtype}, {result.device}"
                assert bool(result.isfinite().all()), "not finite"
                check_equal(result, distribution.log_prob(*arguments))
        with offences.record(name, "sample"), without_shape_checks(), unchanged_globals(torch_generator=False):
            if case.sample is None:
                continue
            with other_default_device():
                samples = tensors_of(seeded(partial(case.sample, distribution)))
            check_equal(samples, seeded(partial(case.sample, distribution)))
            assert all(len(each) == 3 for each in samples[:1]), f"shape {tuple(samples[0].shape)}"
            others = {each.dtype for each in samples} - {torch.float64, torch.int64}
            assert not others, f"samples of {others}"
    offences.check()
