"""Claims about Boltzmann machines: exact sums, the learning rule and Markov chains (book sec. 11.1)."""

import torch
from torch import Tensor

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal
from parnassus.latent.energy_based.boltzmann_distribution import log_partition
from parnassus.latent.energy_based.markov_chain_monte_carlo import gibbs_sampling
from parnassus.latent.energy_based.restricted_boltzmann_machine import (
    RBM,
    ContrastiveDivergence,
    PersistentContrastiveDivergence,
)
from parnassus.latent.likelihood_estimation.annealed_importance_sampling import (
    ais_log_partition,
    anneal,
    reverse_anneal,
    sigmoid_inverse_temperatures,
)
from parnassus.layers.dropout import all_masks


def random_rbm(visible: int, hidden: int, *, scale: float = 1.0, seed: int = 0) -> RBM:
    torch.manual_seed(seed)
    rbm = RBM(visible, hidden).double()
    for parameter in rbm.parameters():
        torch.nn.init.normal_(parameter, std=scale)
    return rbm


def patterns() -> Tensor:
    """Eight patterns of six visible units: three pairs of equal bits."""
    return all_masks(3).double().repeat_interleave(2, 1)


def loss_gradient(rbm: RBM, loss: Tensor) -> Tensor:
    """Gradient with respect to all parameters, as one vector."""
    return torch.cat([part.flatten() for part in torch.autograd.grad(loss, list(rbm.parameters()))])


@claim("B6.1-10", "B11.1-3")
def enumerating_the_smaller_layer_gives_the_partition_function() -> Evidence:
    """The sum over 2^min(V, H) states gives the log Z of all 2^(V + H) pairs, and Σ p(v) = 1 (book eq. 6.9)."""
    log_z, log_z_of_pairs, probability_sums = [], [], []
    for visible, hidden in ((6, 4), (4, 6), (5, 5)):
        rbm = random_rbm(visible, hidden)
        v, h = all_masks(visible).double(), all_masks(hidden).double()
        pairs = rbm.energy(v[:, None].expand(-1, len(h), -1), h.expand(len(v), -1, -1))
        log_z.append(rbm.log_partition())
        log_z_of_pairs.append(log_partition(pairs.flatten()))
        probability_sums.append(rbm.log_prob(v).exp().sum())
    return all_of(
        log_z=close(torch.stack(log_z), torch.stack(log_z_of_pairs), rtol=1e-12),
        normalised=close(torch.stack(probability_sums), 1.0, atol=1e-10),
    )


@claim("B11.1-3")
def the_likelihood_gradient_is_a_difference_of_data_and_model_correlations() -> Evidence:
    """∂ log p/∂W = ⟨h vᵀ⟩_data − ⟨h vᵀ⟩_model equals the gradient of the exact likelihood (book sec. 11.1)."""
    rbm, x = random_rbm(6, 4), patterns()
    (by_autograd,) = torch.autograd.grad(rbm.log_prob(x).mean(), rbm.weight)
    v = all_masks(6).double()
    p = rbm.log_prob(v).exp()
    hidden_probabilities = rbm.hidden_logits(v).sigmoid()
    data_correlations = rbm.hidden_logits(x).sigmoid().mT @ x / len(x)
    model_correlations = hidden_probabilities.mT @ (p[:, None] * v)
    return all_of(
        learning_rule=close(by_autograd, data_correlations - model_correlations, atol=1e-12),
        data_term_alone_differs=greater_equal((by_autograd - data_correlations).abs().max(), 0.1),
    )


@claim("B11.1-3")
def contrastive_divergence_tends_to_the_likelihood_gradient() -> Evidence:
    """The gradient of CD-k is biased at k = 1 and converges to that of −log p as k grows (book sec. 11.1)."""
    rbm, x = random_rbm(6, 4), patterns().repeat(4_000, 1)
    exact = loss_gradient(rbm, -rbm.log_prob(patterns()).mean())
    errors = {}
    for steps in (1, 3, 100):
        rbm.negative_sampler = ContrastiveDivergence(steps)
        errors[steps] = (loss_gradient(rbm, rbm.loss(x)) - exact).norm() / exact.norm()
    return all_of(
        biased_after_one_step=greater_equal(errors[1], 0.1),
        smaller_after_three=less_equal(errors[3], errors[1]),
        unbiased_after_many=less_equal(errors[100], 0.03),
    )


@claim("B11.1-3")
def training_increases_the_exact_likelihood() -> Evidence:
    """CD-1 and persistent chains increase the exact likelihood of eight patterns towards log 1/8 (book sec. 11.1)."""
    x, gains = patterns(), {}
    for name, negatives in (
        ("CD-1", ContrastiveDivergence(1)),
        ("persistent", PersistentContrastiveDivergence(100, 6).double()),
    ):
        rbm = random_rbm(6, 6, scale=0.1)
        rbm.negative_sampler = negatives
        before = rbm.log_prob(x).mean()
        optimizer = torch.optim.SGD(rbm.parameters(), lr=0.5)
        for _ in range(300):
            optimizer.zero_grad()
            rbm.loss(x).backward()
            optimizer.step()
        gains[name] = rbm.log_prob(x).mean() - before
    best = torch.tensor(8.0).log().neg() - before
    return all_of(
        by_contrastive_divergence=greater_equal(gains["CD-1"], 0.5 * best),
        by_persistent_chains=greater_equal(gains["persistent"], 0.5 * best),
        upper_bound=less_equal(torch.stack(list(gains.values())), best),
    )


@claim("B11.1-3")
def a_unit_of_a_boltzmann_machine_is_a_sigmoid_of_its_neighbours() -> Evidence:
    """For E = −½ sᵀWs − bᵀs the Gibbs probability is σ(Σ_j W_ij s_j + b_i), W = Wᵀ, W_ii = 0 (book sec. 11.1)."""
    torch.manual_seed(0)
    weights = torch.randn(5, 5).double().triu(1)
    weights, bias = weights + weights.mT, torch.randn(5).double()

    def energy(s: Tensor) -> Tensor:
        return -((s @ weights) * s).sum(-1) / 2 - s @ bias

    s = all_masks(5).double()
    flips = torch.eye(5).double()
    energy_gaps = torch.stack(
        [energy(s * (1 - flips[i])) - energy((s * (1 - flips[i])) + flips[i]) for i in range(5)], 1
    )
    samples = gibbs_sampling(
        energy, torch.zeros(30_000, 5).double(), sweeps=15, generator=torch.Generator().manual_seed(1)
    )
    p = (-energy(s)).softmax(0)
    return all_of(
        conditional_probabilities=close(energy_gaps.sigmoid(), (s @ weights + bias).sigmoid(), atol=1e-12),
        correlations=close(samples.mT @ samples / len(samples), s.mT @ (p[:, None] * s), atol=0.02),
    )


@claim("B6.1-10", "B11.1-3")
def annealed_importance_sampling_estimates_log_z() -> Evidence:
    """AIS estimates log Z from below on average, more accurately with more temperatures (book eq. 6.9)."""
    rbm = random_rbm(10, 6)
    exact = rbm.log_partition().detach()
    result = ais_log_partition(rbm, num_chains=400, num_temperatures=400)
    log_weights = {
        count: ais_log_partition(rbm, num_chains=400, num_temperatures=count).log_weights for count in (10, 100)
    }
    return all_of(
        deviation_in_standard_errors=less_equal((result.estimate - exact).abs() / result.standard_error, 4.0),
        standard_error=less_equal(result.standard_error, 0.05),
        one_chain_is_a_lower_bound=less_equal(log_weights[10].mean(), exact - 0.1),
        bound_tightens_with_more_temperatures=less_equal(
            exact - log_weights[100].mean(), 0.3 * (exact - log_weights[10].mean())
        ),
        effective_sample_size=greater_equal(result.effective_sample_size, 200.0),
    )


@claim("B6.1-10")
def reverse_annealing_bounds_log_z_from_above() -> Evidence:
    """Reverse AIS from exact samples: −E[log w] ≥ log Z₁/Z₀ ≥ E[log w] of forward AIS (book eq. 6.9)."""
    torch.manual_seed(0)
    std = torch.tensor([2.0, 0.3, 1.0], dtype=torch.float64)

    def path(x: Tensor, beta: float) -> Tensor:
        return -(x.square() * (1 - beta + beta / std.square())).sum(-1) / 2

    def resample(x: Tensor, beta: float, _index: int) -> Tensor:
        return torch.randn_like(x) / (1 - beta + beta / std.square()).sqrt()

    exact = std.log().sum()
    start = torch.randn(4_000, 3, dtype=torch.float64)
    lower = anneal(path, resample, start, sigmoid_inverse_temperatures(20))
    upper = reverse_anneal(path, resample, start * std, sigmoid_inverse_temperatures(20))
    return all_of(
        forward_is_a_lower_bound=less_equal(lower.log_weights.mean(), exact - 0.01),
        reverse_is_an_upper_bound=greater_equal(-upper.log_weights.mean(), exact + 0.01),
        forward_estimate=close(lower.estimate, exact, atol=0.05),
        reverse_estimate=close(upper.estimate, exact, atol=0.05),
    )
