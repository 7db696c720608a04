"""Claims about Boltzmann machines: exact sums, the learning rule, and chains in their stead (book sec. 11.1)."""

import torch
from torch import Tensor

from parnassus.atlas import Evidence, all_of, at_least, at_most, claim, close
from parnassus.latent.ais import anneal, annealed_log_partition, reverse_anneal, sigmoid_times
from parnassus.latent.energy import gibbs, log_partition
from parnassus.latent.rbm import RBM, FromData, Persistent
from parnassus.layers.dropout import every_mask


def machine(visible: int, hidden: int, *, scale: float = 1.0, seed: int = 0) -> RBM:
    torch.manual_seed(seed)
    rbm = RBM(visible, hidden).double()
    for parameter in rbm.parameters():
        torch.nn.init.normal_(parameter, std=scale)
    return rbm


def patterns() -> Tensor:
    """Six visible units: three pairs, each of two equal bits."""
    return every_mask(3).double().repeat_interleave(2, 1)


def slope(rbm: RBM, loss: Tensor) -> Tensor:
    """The gradient by all parameters, as one vector."""
    return torch.cat([part.flatten() for part in torch.autograd.grad(loss, list(rbm.parameters()))])


@claim("B6.1-10", "B11.1-3")
def listing_the_smaller_layer_gives_the_sum_over_both() -> Evidence:
    """Log Z by 2^min(V, H) states equals that over all 2^(V + H) pairs, and log p sums to one (book eq. 6.9)."""
    found, brute, total = [], [], []
    for visible, hidden in ((6, 4), (4, 6), (5, 5)):
        rbm = machine(visible, hidden)
        v, h = every_mask(visible).double(), every_mask(hidden).double()
        pairs = rbm.energy(v[:, None].expand(-1, len(h), -1), h.expand(len(v), -1, -1))
        found.append(rbm.log_partition())
        brute.append(log_partition(pairs.flatten()))
        total.append(rbm.log_prob(v).exp().sum())
    return all_of(
        log_z=close(torch.stack(found), torch.stack(brute), rtol=1e-12),
        normalised=close(torch.stack(total), 1.0, atol=1e-10),
    )


@claim("B11.1-3")
def the_likelihood_rises_with_the_data_and_falls_with_the_model() -> Evidence:
    """∂ log p/∂W = ⟨h vᵀ⟩_data − ⟨h vᵀ⟩_model, which is autograd's of the listed likelihood (book sec. 11.1)."""
    rbm, x = machine(6, 4), patterns()
    (by_autograd,) = torch.autograd.grad(rbm.log_prob(x).mean(), rbm.weight)
    v = every_mask(6).double()
    p = rbm.log_prob(v).exp()
    on = rbm.hidden_input(v).sigmoid()
    data = rbm.hidden_input(x).sigmoid().mT @ x / len(x)
    model = on.mT @ (p[:, None] * v)
    return all_of(
        learning_rule=close(by_autograd, data - model, atol=1e-12),
        one_half_alone_is_not_it=at_least((by_autograd - data).abs().max(), 0.1),
    )


@claim("B11.1-3")
def contrastive_divergence_tends_to_the_likelihood_gradient() -> Evidence:
    """The gradient of CD-k is biased at k = 1 and tends to that of −log p as k grows (book sec. 11.1)."""
    rbm, x = machine(6, 4), patterns().repeat(4_000, 1)
    exact = slope(rbm, -rbm.log_prob(patterns()).mean())
    errors = {}
    for steps in (1, 3, 100):
        rbm.negatives = FromData(steps)
        errors[steps] = (slope(rbm, rbm.loss(x)) - exact).norm() / exact.norm()
    return all_of(
        biased_after_one_step=at_least(errors[1], 0.1),
        less_after_three=at_most(errors[3], errors[1]),
        exact_up_to_noise_after_many=at_most(errors[100], 0.03),
    )


@claim("B11.1-3")
def learning_raises_the_exact_likelihood() -> Evidence:
    """CD-1 and persistent chains raise the listed likelihood of eight patterns towards log 1/8 (book sec. 11.1)."""
    x, gains = patterns(), {}
    for name, negatives in (("CD-1", FromData(1)), ("persistent", Persistent(100, 6).double())):
        rbm = machine(6, 6, scale=0.1)
        rbm.negatives = negatives
        before = rbm.log_prob(x).mean()
        optimizer = torch.optim.SGD(rbm.parameters(), lr=0.5)
        for _ in range(300):
            optimizer.zero_grad()
            rbm.loss(x).backward()
            optimizer.step()
        gains[name] = rbm.log_prob(x).mean() - before
    best = torch.tensor(8.0).log().neg() - before
    return all_of(
        by_contrastive_divergence=at_least(gains["CD-1"], 0.5 * best),
        by_persistent_chains=at_least(gains["persistent"], 0.5 * best),
        nothing_does_better=at_most(torch.stack(list(gains.values())), best),
    )


@claim("B11.1-3")
def a_unit_of_a_boltzmann_machine_is_a_sigmoid_of_its_neighbours() -> Evidence:
    """With E = −½ sᵀWs − bᵀs the rule of `gibbs` is σ(Σ_j W_ij s_j + b_i), W symmetric, W_ii = 0 (book sec. 11.1)."""
    torch.manual_seed(0)
    bonds = torch.randn(5, 5).double().triu(1)
    bonds, bias = bonds + bonds.mT, torch.randn(5).double()

    def energy(s: Tensor) -> Tensor:
        return -((s @ bonds) * s).sum(-1) / 2 - s @ bias

    s = every_mask(5).double()
    flips = torch.eye(5).double()
    gap = torch.stack([energy(s * (1 - flips[i])) - energy((s * (1 - flips[i])) + flips[i]) for i in range(5)], 1)
    drawn = gibbs(energy, torch.zeros(30_000, 5).double(), sweeps=15, generator=torch.Generator().manual_seed(1))
    p = (-energy(s)).softmax(0)
    return all_of(
        rule=close(gap.sigmoid(), (s @ bonds + bias).sigmoid(), atol=1e-12),
        correlations=close(drawn.mT @ drawn / len(drawn), s.mT @ (p[:, None] * s), atol=0.02),
    )


@claim("B6.1-10", "B11.1-3")
def annealing_finds_log_z_within_its_spread() -> Evidence:
    """Annealed chains give log Z: low on average, and closer the more times they pass (book eq. 6.9)."""
    rbm = machine(10, 6)
    exact = rbm.log_partition().detach()
    found = annealed_log_partition(rbm, chains=400, times=400)
    single = {times: annealed_log_partition(rbm, chains=400, times=times).log_weights for times in (10, 100)}
    return all_of(
        within_four_spreads=at_most((found.estimate - exact).abs() / found.spread, 4.0),
        spread=at_most(found.spread, 0.05),
        one_chain_is_low_on_average=at_most(single[10].mean(), exact - 0.1),
        less_so_with_more_times=at_most(exact - single[100].mean(), 0.3 * (exact - single[10].mean())),
        effective_chains=at_least(found.effective, 200.0),
    )


@claim("B6.1-10")
def walking_back_bounds_log_z_from_above() -> Evidence:
    """Reverse chains from exact draws: −E[log w] ≥ log Z₁/Z₀ ≥ E[log w] of forward ones (book eq. 6.9)."""
    torch.manual_seed(0)
    width = torch.tensor([2.0, 0.3, 1.0], dtype=torch.float64)

    def path(x: Tensor, t: float) -> Tensor:
        return -(x.square() * (1 - t + t / width.square())).sum(-1) / 2

    def redraw(x: Tensor, t: float, _number: int) -> Tensor:
        return torch.randn_like(x) / (1 - t + t / width.square()).sqrt()

    exact = width.log().sum()
    start = torch.randn(4_000, 3, dtype=torch.float64)
    lower = anneal(path, redraw, start, sigmoid_times(20))
    upper = reverse_anneal(path, redraw, start * width, sigmoid_times(20))
    return all_of(
        forward_is_low=at_most(lower.log_weights.mean(), exact - 0.01),
        backward_is_high=at_least(-upper.log_weights.mean(), exact + 0.01),
        forward_estimate=close(lower.estimate, exact, atol=0.05),
        backward_estimate=close(upper.estimate, exact, atol=0.05),
    )
