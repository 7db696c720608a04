"""Claims about mutual information in infinite ensembles of infinitely wide networks (book ch. 18)."""

from math import log

import torch

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal
from parnassus.kernels.finite_width.backpropagation import network_outputs, random_weights, train_networks
from parnassus.kernels.infinite_width.network import fully_connected
from parnassus.kernels.infinite_width.nonlinearity import ReLU
from parnassus.kernels.training_dynamics.infinite_ensemble import (
    InfiniteEnsemble,
    input_mutual_information,
    label_mutual_information,
)
from parnassus.probability import normal_log_density, points_on_sphere

NETWORKS, WIDTH = 200, 512


@claim("BF-1")
def trained_ensembles_have_the_predicted_distribution() -> Evidence:
    """Outputs of 200 trained ReLU networks have the mean and variance that K and Θ predict (book ch. 18)."""
    x, new = points_on_sphere(4, 3), points_on_sphere(3, 3, seed=1)
    y = torch.tensor([1.0, -1.0, 1.0, -1.0], dtype=torch.float64)
    ensemble = InfiniteEnsemble.fit(fully_connected(1, ReLU()), x, y)
    first = random_weights((3, WIDTH, 1), draws=(NETWORKS,), generator=torch.Generator().manual_seed(2))
    weights, means, variances, distances, now = first, [], [], [], 0.0
    for time in (0.5, 1.0, 2.0):
        weights = train_networks(weights, x, y, ReLU(), learning_rate=0.1, steps=round((time - now) / 0.1))
        now, predicted, outputs = time, ensemble.distribution(new, time), network_outputs(weights, new, ReLU())
        deviation = predicted.covariance.diagonal().sqrt()
        means.append((outputs.mean(0) - predicted.mean) / deviation * NETWORKS**0.5)
        variances.append(outputs.var(0) / deviation.square())
        moved = sum((a - b).square().sum((1, 2)) for a, b in zip(weights, first, strict=True))
        distances.append(torch.as_tensor(moved).mean() / ensemble.parameter_distance(time))
    return all_of(
        mean_in_standard_errors=less_equal(torch.stack(means).abs(), 4.0),
        variance=close(torch.stack(variances), 1.0, atol=0.35),
        parameter_distance=close(torch.stack(distances), 1.0, atol=0.15),
    )


@claim("BF-1")
def the_ensemble_starts_as_its_prior_and_ends_at_its_labels() -> Evidence:
    """At τ = 0 outputs are the NNGP prior, at τ → ∞ the labels; the information gain increases (book ch. 18)."""
    x, new = points_on_sphere(6, 3), points_on_sphere(4, 3, seed=1)
    y = torch.tensor([1.0, -1.0, 1.0, -1.0, 1.0, -1.0], dtype=torch.float64)
    network = fully_connected(2, ReLU())
    ensemble = InfiniteEnsemble.fit(network, x, y)
    first, last = ensemble.distribution(new, 0.0), ensemble.distribution(x, torch.inf)
    gains = torch.tensor([ensemble.information_gain(x, time) for time in (0.0, 0.1, 0.5, 1.0, 3.0)])
    distances = torch.tensor([ensemble.parameter_distance(time) for time in (0.0, 0.1, 1.0, 10.0, torch.inf)])
    return all_of(
        prior=close(first.covariance, network.nngp(new), atol=1e-12),
        labels=close(last.mean, y, atol=1e-9),
        variance_at_the_end=close(last.covariance, 0.0, atol=1e-9),
        initial_gain=close(gains[0], 0.0, atol=1e-9),
        gain_increases=greater_equal(gains.diff(), 0.0),
        parameter_distance_increases=greater_equal(distances.diff(), 0.0),
        error_on_training_points=less_equal(ensemble.expected_error(x, y, 100.0), 1e-6),
    )


@claim("BF-1")
def mutual_information_of_gaussian_outputs_is_exact() -> Evidence:
    """I(X; Z) and I(Y; Z) of Gaussian outputs have the right limits and order and match sampling (book ch. 18)."""
    generator = torch.Generator().manual_seed(0)
    means = torch.randn(8, generator=generator, dtype=torch.float64)
    variances = torch.rand(8, generator=generator, dtype=torch.float64) + 0.05
    labels = (means > 0).long()
    with_inputs = input_mutual_information(means, variances)
    index = torch.randint(8, (200_000,), generator=generator)
    z = means[index] + variances[index].sqrt() * torch.randn(200_000, generator=generator, dtype=torch.float64)
    each = normal_log_density(z[:, None], mean=means, variance=variances)
    sampled = each.gather(1, index[:, None])[:, 0] - each.logsumexp(1) + log(8)
    apart = torch.arange(8, dtype=torch.float64)
    tiny = torch.full((8,), 1e-8, dtype=torch.float64)
    return all_of(
        sampling=close(with_inputs, sampled.mean(), atol=5 * float(sampled.std()) / 200_000**0.5),
        label_information_is_smaller=less_equal(label_mutual_information(means, variances, labels), with_inputs),
        far_apart=close(input_mutual_information(apart, tiny), log(8), atol=1e-4),
        in_bits=close(input_mutual_information(apart, tiny, base=2.0), 3.0, atol=1e-3),
        labels_far_apart=close(label_mutual_information(apart, tiny, (apart > 3).long()), log(2), atol=1e-4),
        identical_outputs=close(input_mutual_information(torch.zeros(8), torch.ones(8)), 0.0, atol=1e-5),
    )
