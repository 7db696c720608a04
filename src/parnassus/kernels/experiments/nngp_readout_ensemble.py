"""Ensembles of wide networks with trained readouts sample the NNGP posterior (book sec. 15.3)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from parnassus.data.built_in.toy import curve
from parnassus.kernels import NNGP, Erf, GPPrediction, GPRegression, Network, ScaledLinear, fully_connected
from parnassus.report import FAINT, INK, PALETTE, curves, subplots
from parnassus.train import NonNegative, Positive, Run, at_most, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B15.3-5",)
expected = {
    "mean_gap": between(0.3, 2.5, "distance of the means, in standard errors of the ensemble mean"),
    "spread_ratio": between(0.8, 1.2, "ratio of the standard deviations of ensemble and posterior, averaged over x"),
    "narrow_gap": between(2.0, 25.0, "distance of the means at width 4, in standard errors"),
    "distance_to_optimum": at_most(0.02, "distance of the trained functions from the closed-form optimum"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"num_networks": 12, "width": 64, "steps": 300}, "gpu": {}}


@dataclass(frozen=True)
class Experiment:
    num_networks: Positive[int] = 150  # networks in the ensemble
    width: Positive[int] = 512  # hidden units of each of two layers
    num_points: Positive[int] = 10  # training points
    noise_std: NonNegative[float] = 0.2  # standard deviation of the targets' noise
    steps: Positive[int] = 1_500  # steps of gradient descent on the readouts

    def __call__(self, run: Run) -> dict[str, float]:
        data = curve(
            self.num_points, lambda x: (2 * x).sin() + x / 2, noise=self.noise_std, seed=run.seed, low=-2.0, high=2.0
        )
        assert data.y is not None
        x, t = data.x.double(), data.y.double()[:, 0]
        new = torch.linspace(-3, 3, 121, dtype=torch.float64)[:, None]
        network = fully_connected(2, Erf(), bias_variance=0.5)
        posterior = GPRegression.fit(NNGP(network), x, t, noise_variance=self.noise_std**2).predict(new)

        features = random_features(network, torch.cat([x, new]), self.width, self.num_networks)
        train_features, test_features = features[:, : len(x)], features[:, len(x) :]
        initial, noisy_targets, optimum = self.start(features, t)
        weights = nn.Parameter(initial.clone(), requires_grad=False)
        run.keep("readouts", nn.ParameterList([weights]))
        learning_rate = 1 / (torch.linalg.matrix_norm(train_features, 2).square()[:, None] + self.noise_std**2)
        for step, _ in run.steps(self.steps):
            residual = torch.einsum("enp,ep->en", train_features, weights) - noisy_targets
            decay = self.noise_std**2 * (weights - initial)
            weights.sub_(learning_rate * (torch.einsum("enp,en->ep", train_features, residual) + decay))
            run.log(step, loss=residual.square().mean())
        functions = torch.einsum("enp,ep->en", test_features, weights)
        optimal = torch.einsum("enp,ep->en", test_features, optimum)

        run.figure(
            "posterior and ensemble",
            plot_bands(x, t, new, posterior, functions),
            f"Left: NNGP posterior, mean ± two standard deviations. Right: {self.num_networks} networks of width "
            f"{self.width} with trained readouts: some members, their mean ± two standard deviations.",
        )
        narrow = self.narrow_gaps(network, x, t, new, posterior)
        run.figure(
            "agreement against width",
            curves(
                {"distance of the means": (list(narrow), list(narrow.values()))},
                x_label="width",
                y_label="distance in standard errors",
                log_x=True,
            ),
            "The mean of narrow networks differs; with growing width only the sampling error remains.",
        )
        ratio = functions.std(0) / posterior.variance.sqrt()
        run.note(
            "sample-then-optimise",
            "Each member has random hidden layers, a random initial readout w₀ ~ N(0, I) and its own noise ε on the "
            "targets, and minimises ‖Φw − t − ε‖² + σ²‖w − w₀‖². The minimiser is a sample from the posterior of its "
            "readout; for wide networks the ensemble samples the NNGP posterior.",
        )
        return {
            "mean_gap": mean_gap(functions, posterior),
            "spread_ratio": float(ratio.mean()),
            "narrow_gap": narrow[4],
            "distance_to_optimum": float((functions - optimal).abs().max()),
        }

    def start(self, features: Tensor, t: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Random readouts, targets with each member's own noise, and the optimal readouts in closed form."""
        train_features = features[:, : len(t)]
        initial = torch.randn(len(features), features.shape[2], dtype=t.dtype)
        noisy_targets = t + self.noise_std * torch.randn(len(features), len(t), dtype=t.dtype)
        gram = train_features @ train_features.mT + self.noise_std**2 * torch.eye(len(t), dtype=t.dtype)
        residual = noisy_targets - torch.einsum("enp,ep->en", train_features, initial)
        update = torch.einsum("enp,en->ep", train_features, torch.linalg.solve(gram, residual))
        return initial, noisy_targets, initial + update

    def narrow_gaps(
        self, network: Network, x: Tensor, t: Tensor, new: Tensor, posterior: GPPrediction
    ) -> dict[int, float]:
        """The distance of the means by width, for optimal readouts in closed form."""
        gaps = {}
        for width in (4, 16, 64, 256):
            features = random_features(network, torch.cat([x, new]), width, self.num_networks)
            optimum = self.start(features, t)[2]
            gaps[width] = mean_gap(torch.einsum("enp,ep->en", features[:, len(x) :], optimum), posterior)
        return gaps


@torch.no_grad()
def random_features(network: Network, x: Tensor, width: int, num_networks: int) -> Tensor:
    """Inputs of the last layers including the bias, (networks, n, width + 1): outputs are Φw with w ~ N(0, I)."""
    parts = []
    for _ in range(num_networks):
        module = network.module((x.shape[1],), width).double()
        last = module[-1]
        assert isinstance(last, ScaledLinear)
        hidden = last.scale * module[:-1](x)
        parts.append(torch.cat([hidden, torch.full_like(hidden[:, :1], last.shift)], 1))
    return torch.stack(parts)


def mean_gap(functions: Tensor, posterior: GPPrediction) -> float:
    """Root mean square over x of the difference of means, in standard errors of the ensemble mean."""
    error = functions.std(0) / len(functions) ** 0.5
    return float(((functions.mean(0) - posterior.mean) / error).square().mean().sqrt())


def plot_bands(x: Tensor, t: Tensor, new: Tensor, posterior: GPPrediction, functions: Tensor) -> "Figure":
    figure, axes = subplots(1, 2, size=(10.0, 3.8))
    sides = (
        ("NNGP posterior", posterior.mean, posterior.variance.sqrt()),
        ("networks with trained readouts", functions.mean(0), functions.std(0)),
    )
    for ax, (title, mean, deviation) in zip(axes[0], sides, strict=True):
        ax.fill_between(new[:, 0], mean - 2 * deviation, mean + 2 * deviation, color=PALETTE[0], alpha=0.2, linewidth=0)
        ax.plot(new[:, 0], mean, color=PALETTE[0])
        ax.scatter(x[:, 0], t, color=INK, s=18, zorder=3)
        ax.set(title=title, xlabel="x", ylim=(-3, 3))
    for function in functions[:8]:
        axes[0, 1].plot(new[:, 0], function, color=FAINT, linewidth=0.8)
    axes[0, 0].set_ylabel("f(x)")
    return figure
