"""Variational free energy of an Ising model: exact and mean-field posteriors (book sec. 6.1)."""

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.optim import Adam

from parnassus.latent.energy_based.boltzmann_distribution import (
    boltzmann_distribution,
    free_energy,
    log_partition,
    min_free_energy,
)
from parnassus.latent.energy_based.markov_chain_monte_carlo import gibbs_sampling
from parnassus.layers.dropout import all_masks
from parnassus.probability import entropy, kl_divergence, total_variation
from parnassus.report import FAINT, PALETTE, curves, image_grid, subplots
from parnassus.train import Positive, Run, at_least, at_most, no_band

covers = ("B6.1-10", "B6.1-11")
expected = {
    "unrestricted_kl": at_most(1e-3, "KL(q ‖ posterior) of the unrestricted q, nats"),
    "factorised_kl": at_least(0.05, "KL(q ‖ posterior) of the factorised q, nats"),
    "posterior_distance": at_most(0.01, "total variation distance between the unrestricted q and the posterior"),
    "nll": no_band("−log p(x) of the observed spins, the minimum of β F + log Z"),
    "gibbs_distance": at_most(0.05, "total variation distance between Gibbs samples and the posterior"),
}
profiles = {"smoke": {"steps": 20, "num_sweeps": 2, "num_chains": 200}, "gpu": {}}
SIDE = 4


class UnrestrictedPosterior(nn.Module):
    """An approximate posterior q(z) with one parameter for each state of the hidden spins."""

    def __init__(self, states: Tensor) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(len(states), dtype=states.dtype))

    def forward(self) -> Tensor:
        return self.logits.softmax(0)


class FactorisedPosterior(nn.Module):
    """The mean-field posterior q(z) = ∏_i q_i(z_i), with one parameter for each spin."""

    states: Tensor

    def __init__(self, states: Tensor) -> None:
        super().__init__()
        self.register_buffer("states", states)
        self.logits = nn.Parameter(torch.zeros(states.shape[1], dtype=states.dtype))

    def forward(self) -> Tensor:
        return torch.where(self.states > 0, self.logits, -self.logits).sigmoid().prod(1)


@dataclass(frozen=True)
class Experiment:
    beta: Positive[float] = 0.6  # inverse temperature
    steps: Positive[int] = 1_000  # gradient steps per posterior
    learning_rate: Positive[float] = 0.1  # Adam's learning rate
    num_sweeps: Positive[int] = 30  # sweeps of Gibbs sampling
    num_chains: Positive[int] = 20_000  # chains of Gibbs sampling

    def __call__(self, run: Run) -> dict[str, float]:
        all_states = all_masks(SIDE**2).double()
        hidden = all_masks(SIDE**2 // 2).double()
        observed = torch.tensor([1.0] * SIDE + [0.0] * SIDE, dtype=torch.float64)  # one row up, one down
        completed = torch.cat([observed.expand(len(hidden), -1), hidden], 1)
        energy, log_z = ising_energy(completed), log_partition(ising_energy(all_states), beta=self.beta)
        posterior = boltzmann_distribution(energy, beta=self.beta)
        nll = float(self.beta * min_free_energy(energy, beta=self.beta) + log_z)
        plot_states(run, completed, posterior)

        approximations = {"unrestricted": self.fit(run, "unrestricted", UnrestrictedPosterior(hidden), energy, log_z)}
        approximations["factorised"] = self.fit(run, "factorised", FactorisedPosterior(hidden), energy, log_z)
        plot_training(run, nll)
        plot_posteriors(run, {"posterior": posterior, **approximations}, completed)
        plot_temperatures(run, ising_energy(all_states))
        distance = self.compare_gibbs_sampling(run, observed, posterior)
        gaps = {name: float(kl_divergence(q, posterior)) for name, q in approximations.items()}
        run.note(
            "variational gap",
            f"The negative log-likelihood of the observed spins is {nll:.3f} nats. The unrestricted q attains it; the "
            f"factorised q stays {gaps['factorised']:.3f} nats above, its KL divergence from a posterior with "
            "correlated spins. Encoders with a diagonal Gaussian posterior are factorised as well.",
        )
        return {
            "unrestricted_kl": gaps["unrestricted"],
            "factorised_kl": gaps["factorised"],
            "posterior_distance": float(total_variation(approximations["unrestricted"], posterior)),
            "nll": nll,
            "gibbs_distance": distance,
        }

    def fit(
        self, run: Run, name: str, model: UnrestrictedPosterior | FactorisedPosterior, energy: Tensor, log_z: Tensor
    ) -> Tensor:
        """Minimise F(q) by gradient descent; β F + log Z = KL(q(z) ‖ p(x, z)) is recorded."""
        model, optimizer = run.prepare(model, partial(Adam, lr=self.learning_rate))
        energy = energy.to(run.device)
        for step, _ in run.steps(self.steps):
            loss = free_energy(energy, model(), beta=self.beta)
            run.log(step, **{f"free_energy/{name}": self.beta * loss.detach() + log_z})
            run.update(optimizer, loss)
        q: Tensor = model().detach().cpu()
        return q

    def compare_gibbs_sampling(self, run: Run, observed: Tensor, posterior: Tensor) -> float:
        """Total variation distance between Gibbs samples of the hidden spins and the exact posterior."""
        generator = torch.Generator().manual_seed(run.seed)

        def energy(z: Tensor) -> Tensor:
            return ising_energy(torch.cat([observed.expand(len(z), -1), z], 1))

        z = torch.bernoulli(torch.full((self.num_chains, len(observed)), 0.5, dtype=torch.float64), generator=generator)
        powers, distances = 2 ** torch.arange(len(observed)), []
        for sweep in range(self.num_sweeps + 1):
            frequencies = (
                torch.bincount((z.long() * powers).sum(1), minlength=len(posterior)).double() / self.num_chains
            )
            distances.append(float(total_variation(frequencies, posterior)))
            if sweep < self.num_sweeps:
                z = gibbs_sampling(energy, z, sweeps=1, beta=self.beta, generator=generator)
        figure = curves(
            {"Gibbs sampling": (range(self.num_sweeps + 1), distances)},
            x_label="sweeps",
            y_label="total variation distance",
            log_y=True,
        )
        run.figure(
            "gibbs_sampling",
            figure,
            f"Distance of {self.num_chains:,} Gibbs chains to the exact posterior; it converges to the sampling noise.",
        )
        return distances[-1]


def ising_energy(s: Tensor) -> Tensor:
    """E = −Σ σ_i σ_j over neighbours on a 4×4 torus, σ = 2s − 1: the ferromagnetic Ising model."""
    spins = (2 * s - 1).unflatten(-1, (SIDE, SIDE))
    bonds: Tensor = spins * (spins.roll(1, -1) + spins.roll(1, -2))
    return -bonds.sum((-1, -2))


def plot_states(run: Run, completed: Tensor, posterior: Tensor) -> None:
    most_likely = posterior.argsort(descending=True)[:9]
    half = completed[0].clone()
    half[SIDE**2 // 2 :] = 0.5
    images = 0.22 + 0.6 * torch.cat([half[None], completed[most_likely]]).view(-1, 1, SIDE, SIDE)
    run.figure(
        "most_probable_states",
        image_grid(images, columns=10, titles=["observed", *(f"{float(posterior[i]):.3f}" for i in most_likely)]),
        "Ising model of 4×4 spins with periodic boundaries (light: up, dark: down). Two rows are observed, one up and "
        "one down. To the right, the most probable states with their posterior probabilities.",
    )


def plot_training(run: Run, nll: float) -> None:
    lines: dict[str, tuple[object, object]] = {
        f"{name} q": run.curve(f"free_energy/{name}") for name in ("unrestricted", "factorised")
    }
    steps = run.curve("free_energy/unrestricted")[0]
    lines["−log p(x)"] = (steps, [nll] * len(steps))
    run.figure(
        "free_energy",
        curves(lines, x_label="step", y_label="β F(q) + log Z (nats)"),
        "Minimisation of the free energy. β F + log Z = KL(q(z) ‖ p(x, z)) is bounded below by −log p(x).",
    )


def plot_posteriors(run: Run, posteriors: dict[str, Tensor], completed: Tensor) -> None:
    most_likely = posteriors["posterior"].argsort(descending=True)[:9]
    figure, axes = subplots(size=(7.2, 3.6))
    ax, width = axes[0, 0], 0.27
    for index, (name, q) in enumerate(posteriors.items()):
        positions = [position + (index - 1) * width for position in range(9)]
        ax.bar(positions, q[most_likely].tolist(), width=width, color=PALETTE[index], label=name)
    ax.set(xlabel="hidden spins, most probable states first", ylabel="probability")
    labels = [
        "\n".join("".join("↑↓"[int(1 - s)] for s in row) for row in completed[i, SIDE**2 // 2 :].view(2, -1))
        for i in most_likely
    ]
    ax.set_xticks(range(9), labels)
    ax.grid(visible=False, axis="x")
    ax.legend()
    run.figure(
        "posteriors",
        figure,
        "Distributions of the two hidden rows. The unrestricted q equals the posterior; the factorised q does not.",
    )


def plot_temperatures(run: Run, energy: Tensor) -> None:
    """Mean energy, entropy and free energy of all 16 spins against the inverse temperature."""
    betas = torch.logspace(-1.3, 0.7, 60, dtype=torch.float64)
    p = [boltzmann_distribution(energy, beta=float(beta)) for beta in betas]
    spins = SIDE**2
    mean_energy = torch.stack([q @ energy for q in p]) / spins
    entropies = torch.stack([entropy(q) for q in p]) / spins
    figure, axes = subplots(1, 2, size=(9.6, 3.6))
    left, right = axes[0]
    left.plot(betas.numpy(), mean_energy.numpy(), color=PALETTE[0], label="⟨E⟩")
    left.plot(betas.numpy(), (mean_energy - entropies / betas).numpy(), color=PALETTE[1], label="F = ⟨E⟩ − H/β")
    left.set(xscale="log", xlabel="inverse temperature β", ylabel="per spin", ylim=(-6, 0.3))
    left.legend(loc="lower right")
    right.plot(betas.numpy(), entropies.numpy(), color=PALETTE[2], label="entropy H")
    for level, name in (
        (torch.tensor(2.0).log(), "log 2: uniform distribution"),
        (torch.tensor(2.0).log() / spins, "two equally likely states"),
    ):
        right.axhline(float(level), color=FAINT, linestyle="--", linewidth=1)
        right.annotate(name, (float(betas[0]), float(level)), xytext=(0, 3), textcoords="offset points")
    right.set(xscale="log", xlabel="inverse temperature β", ylabel="nats per spin")
    run.figure(
        "temperatures",
        figure,
        "Exact sums over all 65,536 states. For small β the distribution is uniform; for large β only the states all "
        "up and all down have probability.",
    )
