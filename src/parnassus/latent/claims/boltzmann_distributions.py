"""Claims about Boltzmann distributions and the free energy (book sec. 6.1)."""

import torch
from torch import Tensor

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal
from parnassus.latent.energy_based.boltzmann_distribution import (
    boltzmann_distribution,
    free_energy,
    log_partition,
    min_free_energy,
)
from parnassus.latent.energy_based.markov_chain_monte_carlo import gibbs_sampling, metropolis_sampling
from parnassus.layers.dropout import all_masks
from parnassus.probability import standard_normal, total_variation


def energies(*shape: int, seed: int = 0) -> Tensor:
    """Normal energies with standard deviation 2."""
    return 2 * standard_normal(*shape, seed=seed)


def kl_to_the_joint(q: Tensor, joint: Tensor) -> Tensor:
    """KL(q, p(x, z)) = Σ_z q log(q / p(x, z)) for a fixed x, with p(x, ·) not normalised."""
    return (q * (q / joint).log()).sum(-1)


@claim("B6.1-10", "B11.1-2")
def low_energy_is_high_probability() -> Evidence:
    """exp(−βE)/Z sums to 1, decreases with E, is uniform at β = 0, the minimum as β → ∞ (book eq. 6.9)."""
    energy = energies(6 * 7)
    p, low_temperature = boltzmann_distribution(energy, beta=1.3), boltzmann_distribution(energy, beta=500.0)
    expected = (-1.3 * energy).exp() / (-1.3 * energy).exp().sum()
    lowest = torch.zeros_like(energy)
    lowest[energy.argmin()] = 1
    equal_minima = boltzmann_distribution(torch.tensor([1.0, -2.0, -2.0], dtype=torch.float64), beta=500.0)
    return all_of(
        formula=close(p, expected, rtol=1e-12),
        sums_to_one=close(p.sum(), 1.0, atol=1e-12),
        decreases_with_energy=less_equal(p[energy.argsort()].diff(), 0.0),
        uniform_at_beta_zero=close(boltzmann_distribution(energy, beta=0.0), 1 / 42, rtol=1e-12),
        minimum_at_large_beta=close(low_temperature, lowest, atol=1e-6),
        equal_minima_have_equal_probability=close(equal_minima, torch.tensor([0.0, 0.5, 0.5]), atol=1e-12),
        large_energies_do_not_overflow=close(
            boltzmann_distribution(1e4 + energy), boltzmann_distribution(energy), rtol=1e-9
        ),
    )


@claim("B6.1-10", "B11.1-2")
def the_derivatives_of_log_z_are_mean_and_variance_of_the_energy() -> Evidence:
    """−∂ log Z/∂β = ⟨E⟩ and ∂² log Z/∂β² = Var E, so the mean energy decreases with β (book eq. 6.9)."""
    energy, beta, step = energies(30), 0.8, 1e-4
    p = boltzmann_distribution(energy, beta=beta)
    mean, low, middle, high = p @ energy, *(log_partition(energy, beta=beta + i * step) for i in (-1, 0, 1))
    return all_of(
        mean=close(-(high - low) / (2 * step), mean, rtol=1e-6),
        variance=close((high - 2 * middle + low) / step**2, p @ (energy - mean).square(), rtol=1e-5),
    )


@claim("B6.1-10", "B11.1-2")
def gibbs_and_metropolis_sampling_converge_to_the_boltzmann_distribution() -> Evidence:
    """Gibbs and Metropolis frequencies agree with exp(−βE)/Z over 32 states within sampling error (book sec. 11.1)."""
    generator = torch.Generator().manual_seed(0)
    weights, beta = energies(5, 5).float() / 2, 0.7

    def energy(s: Tensor) -> Tensor:
        return ((s @ weights) * s).sum(-1)

    def flip_one(s: Tensor) -> Tensor:
        chosen = torch.randint(5, (len(s), 1), generator=generator)
        return s.scatter(1, chosen, 1 - s.gather(1, chosen))

    exact = boltzmann_distribution(energy(all_masks(5)), beta=beta)
    start = torch.zeros(20_000, 5)
    chains = {
        "gibbs": gibbs_sampling(energy, start, sweeps=20, beta=beta, generator=generator),
        "metropolis": metropolis_sampling(energy, start, flip_one, steps=100, beta=beta, generator=generator).state,
    }
    powers = 2 ** torch.arange(5)
    state_frequencies = {
        name: torch.bincount((s.long() * powers).sum(1), minlength=32) / len(s) for name, s in chains.items()
    }
    return all_of(
        gibbs=less_equal(total_variation(state_frequencies["gibbs"], exact), 0.03),
        metropolis=less_equal(total_variation(state_frequencies["metropolis"], exact), 0.03),
        distance_at_another_temperature=greater_equal(
            total_variation(state_frequencies["gibbs"], boltzmann_distribution(energy(all_masks(5)), beta=2 * beta)),
            0.1,
        ),
    )


@claim("B6.1-11")
def the_posterior_minimises_the_free_energy() -> Evidence:
    """min_q F = −(1/β) log Σ_z e^{−βE(x,z)}, attained only at q = p(z|x), to which q converges (book sec. 6.1)."""
    energy, beta = energies(4, 6), 0.7  # x by z
    joint = boltzmann_distribution(energy.flatten(), beta=beta).view(4, 6)
    posterior = joint / joint.sum(1, keepdim=True)
    q = energies(4, 6, seed=1).softmax(-1)
    logits = torch.zeros(4, 6, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([logits], max_iter=100, tolerance_grad=1e-12, tolerance_change=1e-14)

    def closure() -> Tensor:
        optimizer.zero_grad()
        total = free_energy(energy, logits.softmax(-1), beta=beta).sum()
        total.backward()
        return total

    optimizer.step(closure)
    excess = beta * (free_energy(energy, q, beta=beta) - min_free_energy(energy, beta=beta))
    return all_of(
        at_the_posterior=close(
            free_energy(energy, posterior, beta=beta), min_free_energy(energy, beta=beta), atol=1e-12
        ),
        bayes_is_boltzmann=close(boltzmann_distribution(energy, beta=beta), posterior, rtol=1e-12),
        excess_is_the_kl_divergence=close(excess, (q * (q / posterior).log()).sum(-1), atol=1e-12),
        minimised_by_gradient_descent=close(logits.softmax(-1), posterior, atol=1e-5),
    )


@erratum("B6.1-11", printed="(6.8) is ⟨E⟩ − H/β", right="(6.8) is β (⟨E⟩ − H/β) + log Z")
def the_divergence_to_the_joint_is_not_the_free_energy() -> Correction:
    """KL(q, p(x,z)) = β F(q) + log Z: the text omits the factor β and the constant (book sec. 6.1)."""
    energy, beta = energies(4, 6), 0.7
    joint = boltzmann_distribution(energy.flatten(), beta=beta).view(4, 6)
    q = energies(4, 6, seed=1).softmax(-1)
    free_energies = free_energy(energy, q, beta=beta)
    divergence = kl_to_the_joint(q, joint)
    log_z = log_partition(energy.flatten(), beta=beta)
    return Correction(
        printed=close(free_energies, divergence, atol=1e-3),
        corrected=all_of(
            identity=close(beta * free_energies + log_z, divergence, atol=1e-12),
            minimum_is_the_negative_log_likelihood=close(
                beta * min_free_energy(energy, beta=beta) + log_z, -joint.sum(1).log(), atol=1e-12
            ),
        ),
    )
