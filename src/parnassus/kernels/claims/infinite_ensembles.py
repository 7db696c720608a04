"""Claims about the information in infinite ensembles of infinitely wide networks (book ch. 18)."""

from math import log

import torch
from torch import Tensor
from torch.nn.functional import normalize

from parnassus.atlas import Evidence, all_of, at_least, at_most, claim, close
from parnassus.kernels.backward import network_outputs, random_weights, train_many
from parnassus.kernels.information import InfiniteEnsemble, information_with_inputs, information_with_labels
from parnassus.kernels.network import fully_connected
from parnassus.kernels.nonlinearity import ReLU
from parnassus.probability import normal_log_density

NETWORKS, WIDTH = 200, 512


def points(count: int, seed: int) -> Tensor:
    return normalize(torch.randn(count, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64), dim=1)


@claim("BF-1")
def trained_ensembles_have_the_predicted_law() -> Evidence:
    """Outputs of 200 trained ReLU networks have the mean and variance that K and Θ predict (book ch. 18)."""
    x, new = points(4, 0), points(3, 1)
    y = torch.tensor([1.0, -1.0, 1.0, -1.0], dtype=torch.float64)
    ensemble = InfiniteEnsemble.fit(fully_connected(1, ReLU()), x, y)
    first = random_weights((3, WIDTH, 1), draws=(NETWORKS,), generator=torch.Generator().manual_seed(2))
    weights, means, variances, distances, now = first, [], [], [], 0.0
    for time in (0.5, 1.0, 2.0):
        weights = train_many(weights, x, y, ReLU(), rate=0.1, steps=round((time - now) / 0.1))
        now, law, seen = time, ensemble.law(new, time), network_outputs(weights, new, ReLU())
        deviation = law.covariance.diagonal().sqrt()
        means.append((seen.mean(0) - law.mean) / deviation * NETWORKS**0.5)
        variances.append(seen.var(0) / deviation.square())
        moved = sum((a - b).square().sum((1, 2)) for a, b in zip(weights, first, strict=True))
        distances.append(torch.as_tensor(moved).mean() / ensemble.parameter_distance(time))
    return all_of(
        mean_in_standard_errors=at_most(torch.stack(means).abs(), 4.0),
        variance=close(torch.stack(variances), 1.0, atol=0.35),
        way_of_the_parameters=close(torch.stack(distances), 1.0, atol=0.15),
    )


@claim("BF-1")
def the_ensemble_starts_as_its_prior_and_ends_at_its_labels() -> Evidence:
    """At τ = 0 outputs are the NNGP, at τ → ∞ they are the labels with certainty; learning only grows (book ch. 18)."""
    x, new = points(6, 0), points(4, 1)
    y = torch.tensor([1.0, -1.0, 1.0, -1.0, 1.0, -1.0], dtype=torch.float64)
    network = fully_connected(2, ReLU())
    ensemble = InfiniteEnsemble.fit(network, x, y)
    first, last = ensemble.law(new, 0.0), ensemble.law(x, torch.inf)
    learned = torch.tensor([ensemble.learned(x, time) for time in (0.0, 0.1, 0.5, 1.0, 3.0)])
    distances = torch.tensor([ensemble.parameter_distance(time) for time in (0.0, 0.1, 1.0, 10.0, torch.inf)])
    return all_of(
        prior=close(first.covariance, network.nngp(new), atol=1e-12),
        labels=close(last.mean, y, atol=1e-9),
        certainty=close(last.covariance, 0.0, atol=1e-9),
        nothing_learned_at_first=close(learned[0], 0.0, atol=1e-9),
        learning_grows=at_least(learned.diff(), 0.0),
        parameters_leave=at_least(distances.diff(), 0.0),
        error_on_training_points=at_most(ensemble.expected_error(x, y, 100.0), 1e-6),
    )


@claim("BF-1")
def information_is_exact_instead_of_binned() -> Evidence:
    """I(X; Z) and I(Y; Z) of Gaussian outputs have their limits, their order, and agree with sampling (book ch. 18)."""
    source = torch.Generator().manual_seed(0)
    means = torch.randn(8, generator=source, dtype=torch.float64)
    variances = torch.rand(8, generator=source, dtype=torch.float64) + 0.05
    labels = (means > 0).long()
    with_inputs = information_with_inputs(means, variances)
    drawn = torch.randint(8, (200_000,), generator=source)
    z = means[drawn] + variances[drawn].sqrt() * torch.randn(200_000, generator=source, dtype=torch.float64)
    each = normal_log_density(z[:, None], mean=means, variance=variances)
    sampled = each.gather(1, drawn[:, None])[:, 0] - each.logsumexp(1) + log(8)
    apart = torch.arange(8, dtype=torch.float64)
    tiny = torch.full((8,), 1e-8, dtype=torch.float64)
    return all_of(
        sampling=close(with_inputs, sampled.mean(), atol=5 * float(sampled.std()) / 200_000**0.5),
        labels_know_less=at_most(information_with_labels(means, variances, labels), with_inputs),
        far_apart=close(information_with_inputs(apart, tiny), log(8), atol=1e-4),
        in_bits=close(information_with_inputs(apart, tiny, base=2.0), 3.0, atol=1e-3),
        labels_of_far_apart=close(information_with_labels(apart, tiny, (apart > 3).long()), log(2), atol=1e-4),
        all_alike=close(information_with_inputs(torch.zeros(8), torch.ones(8)), 0.0, atol=1e-5),
    )
