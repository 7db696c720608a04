"""A magnet half seen: the least free energy is the posterior, and a guess by parts stays above (book sec. 6.1)."""

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.optim import Adam

from parnassus.latent.energy import boltzmann, free_energy, gibbs, least_free_energy, log_partition
from parnassus.layers.dropout import every_mask
from parnassus.probability import entropy, kl_divergence, total_variation
from parnassus.report import FAINT, PALETTE, curves, image_grid, subplots
from parnassus.train import Run, at_least, at_most, reported

covers = ("B6.1-10", "B6.1-11")
expected = {
    "free_gap": at_most(1e-3, "KL from the guess that is free to the posterior, in nats"),
    "factorised_gap": at_least(0.05, "the same for a guess in which the spins are independent"),
    "posterior_distance": at_most(0.01, "total variation between the free guess and the posterior"),
    "surprise": reported("−log p(x) of what is seen, the least that β F + log Z can be"),
    "gibbs_distance": at_most(0.05, "total variation between Gibbs sampling of the unseen half and the posterior"),
}
profiles = {"smoke": {"steps": 20, "sweeps": 2, "chains": 200}, "gpu": {}}
SIDE = 4


class Guess(nn.Module):
    """A distribution q(z) over the states of the unseen spins, with one number for each state."""

    def __init__(self, states: Tensor) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(len(states), dtype=states.dtype))

    def forward(self) -> Tensor:
        return self.logits.softmax(0)


class FactorisedGuess(nn.Module):
    """q(z) = ∏_i q_i(z_i), one number for each spin: the mean-field guess, and that of most encoders."""

    states: Tensor

    def __init__(self, states: Tensor) -> None:
        super().__init__()
        self.register_buffer("states", states)
        self.logits = nn.Parameter(torch.zeros(states.shape[1], dtype=states.dtype))

    def forward(self) -> Tensor:
        return torch.where(self.states > 0, self.logits, -self.logits).sigmoid().prod(1)


@dataclass(frozen=True)
class Experiment:
    beta: float = 0.6  # inverse temperature of the magnet
    steps: int = 1_000  # gradient steps of each guess
    rate: float = 0.1  # Adam's learning rate
    sweeps: int = 30  # rounds of Gibbs sampling
    chains: int = 20_000  # chains of Gibbs sampling

    def __call__(self, run: Run) -> dict[str, float]:
        world = every_mask(SIDE**2).double()
        unseen = every_mask(SIDE**2 // 2).double()
        seen = torch.tensor([1.0] * SIDE + [0.0] * SIDE, dtype=torch.float64)  # one row up, one down
        completed = torch.cat([seen.expand(len(unseen), -1), unseen], 1)
        energy, log_z = ising_energy(completed), log_partition(ising_energy(world), beta=self.beta)
        posterior = boltzmann(energy, beta=self.beta)
        surprise = float(self.beta * least_free_energy(energy, beta=self.beta) + log_z)
        show_world(run, completed, posterior)

        guesses = {"free": self.descend(run, "free", Guess(unseen), energy, log_z)}
        guesses["factorised"] = self.descend(run, "factorised", FactorisedGuess(unseen), energy, log_z)
        show_descent(run, surprise)
        show_guesses(run, {"posterior": posterior, **guesses}, completed)
        show_temperatures(run, ising_energy(world))
        distance = self.show_gibbs(run, seen, posterior)
        gaps = {name: float(kl_divergence(q, posterior)) for name, q in guesses.items()}
        run.note(
            "what to see",
            f"What is seen has a surprise of {surprise:.3f} nats. The free guess pays that and no more; the factorised "
            f"one {gaps['factorised']:.3f} nats on top, its divergence from a posterior in which spins hang together. "
            "An encoder that gives each latent its own mean and variance is of the second kind.",
        )
        return {
            "free_gap": gaps["free"],
            "factorised_gap": gaps["factorised"],
            "posterior_distance": float(total_variation(guesses["free"], posterior)),
            "surprise": surprise,
            "gibbs_distance": distance,
        }

    def descend(self, run: Run, name: str, guess: Guess | FactorisedGuess, energy: Tensor, log_z: Tensor) -> Tensor:
        """Lower F(q) by gradient; what is drawn is β F + log Z = KL(q, p(x, z))."""
        guess, optimizer = run.prepare(guess, partial(Adam, lr=self.rate))
        energy = energy.to(run.device)
        for step, _ in run.steps(self.steps):
            free = free_energy(energy, guess(), beta=self.beta)
            run.log(step, **{f"divergence/{name}": self.beta * free.detach() + log_z})
            run.update(optimizer, free)
        q: Tensor = guess().detach().cpu()
        return q

    def show_gibbs(self, run: Run, seen: Tensor, posterior: Tensor) -> float:
        """Sample the unseen half, the seen one held fast, and compare frequencies with the list."""
        generator = torch.Generator().manual_seed(run.seed)

        def energy(z: Tensor) -> Tensor:
            return ising_energy(torch.cat([seen.expand(len(z), -1), z], 1))

        z = torch.bernoulli(torch.full((self.chains, len(seen)), 0.5, dtype=torch.float64), generator=generator)
        powers, distances = 2 ** torch.arange(len(seen)), []
        for sweep in range(self.sweeps + 1):
            share = torch.bincount((z.long() * powers).sum(1), minlength=len(posterior)).double() / self.chains
            distances.append(float(total_variation(share, posterior)))
            if sweep < self.sweeps:
                z = gibbs(energy, z, sweeps=1, beta=self.beta, generator=generator)
        figure = curves(
            {"Gibbs sampling": (range(self.sweeps + 1), distances)},
            x_label="rounds",
            y_label="total variation to the posterior",
            log_y=True,
        )
        run.figure(
            "sampling",
            figure,
            f"{self.chains:,} chains that know only energies come to the posterior, but for the chance in draws.",
        )
        return distances[-1]


def ising_energy(s: Tensor) -> Tensor:
    """E = −Σ σ_i σ_j over neighbours on a 4×4 torus, σ = 2s − 1: spins want to be alike."""
    spins = (2 * s - 1).unflatten(-1, (SIDE, SIDE))
    bonds: Tensor = spins * (spins.roll(1, -1) + spins.roll(1, -2))
    return -bonds.sum((-1, -2))


def show_world(run: Run, completed: Tensor, posterior: Tensor) -> None:
    likeliest = posterior.argsort(descending=True)[:9]
    half = completed[0].clone()
    half[SIDE**2 // 2 :] = 0.5
    images = 0.22 + 0.6 * torch.cat([half[None], completed[likeliest]]).view(-1, 1, SIDE, SIDE)
    run.figure(
        "a world half seen",
        image_grid(images, columns=10, titles=["seen", *(f"{float(posterior[i]):.3f}" for i in likeliest)]),
        "Sixteen spins, light up and dark down, each wishing to be like its neighbours; edges meet round the back. Two "
        "rows are seen, a row up and a row down. Beside them the likeliest states of all, with their probabilities.",
    )


def show_descent(run: Run, surprise: float) -> None:
    lines: dict[str, tuple[object, object]] = {
        f"{name} guess": run.curve(f"divergence/{name}") for name in ("free", "factorised")
    }
    steps = run.curve("divergence/free")[0]
    lines["−log p(x)"] = (steps, [surprise] * len(steps))
    run.figure(
        "descent",
        curves(lines, x_label="step", y_label="β F(q) + log Z, nats"),
        "Descent on the free energy. β F + log Z is the divergence from q to the joint; it can fall to the surprise of "
        "what is seen, and no further.",
    )


def show_guesses(run: Run, guesses: dict[str, Tensor], completed: Tensor) -> None:
    likeliest = guesses["posterior"].argsort(descending=True)[:9]
    figure, axes = subplots(size=(7.2, 3.6))
    ax, width = axes[0, 0], 0.27
    for index, (name, q) in enumerate(guesses.items()):
        places = [place + (index - 1) * width for place in range(9)]
        ax.bar(places, q[likeliest].tolist(), width=width, color=PALETTE[index], label=name)
    ax.set(xlabel="unseen spins, likeliest states first", ylabel="probability")
    labels = [
        "\n".join("".join("↑↓"[int(1 - s)] for s in row) for row in completed[i, SIDE**2 // 2 :].view(2, -1))
        for i in likeliest
    ]
    ax.set_xticks(range(9), labels)
    ax.grid(visible=False, axis="x")
    ax.legend()
    run.figure(
        "guesses",
        figure,
        "The two unseen rows. The free guess is the posterior; the factorised one settles for a part of it.",
    )


def show_temperatures(run: Run, energy: Tensor) -> None:
    """Energy, entropy and free energy of the whole magnet from hot to cold."""
    betas = torch.logspace(-1.3, 0.7, 60, dtype=torch.float64)
    p = [boltzmann(energy, beta=float(beta)) for beta in betas]
    spins = SIDE**2
    mean = torch.stack([q @ energy for q in p]) / spins
    disorder = torch.stack([entropy(q) for q in p]) / spins
    figure, axes = subplots(1, 2, size=(9.6, 3.6))
    left, right = axes[0]
    left.plot(betas.numpy(), mean.numpy(), color=PALETTE[0], label="⟨E⟩")
    left.plot(betas.numpy(), (mean - disorder / betas).numpy(), color=PALETTE[1], label="F = ⟨E⟩ − H/β")
    left.set(xscale="log", xlabel="inverse temperature β", ylabel="per spin", ylim=(-6, 0.3))
    left.legend(loc="lower right")
    right.plot(betas.numpy(), disorder.numpy(), color=PALETTE[2], label="entropy H")
    for level, name in (
        (torch.tensor(2.0).log(), "log 2: all states alike"),
        (torch.tensor(2.0).log() / spins, "two states left"),
    ):
        right.axhline(float(level), color=FAINT, linestyle="--", linewidth=1)
        right.annotate(name, (float(betas[0]), float(level)), xytext=(0, 3), textcoords="offset points")
    right.set(xscale="log", xlabel="inverse temperature β", ylabel="nats per spin")
    run.figure(
        "from hot to cold",
        figure,
        "The whole magnet, all 65,536 states summed. Hot, entropy rules and every state is as likely; cold, energy "
        "does, and only all up and all down remain.",
    )
