"""Wide networks that train their last layer only are draws from the NNGP posterior (book sec. 15.3)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.data.toy import curve
from parnassus.kernels import NNGP, Erf, GPRegression, Network, Prediction, ScaledLinear, fully_connected
from parnassus.report import FAINT, INK, PALETTE, curves, subplots
from parnassus.train import Run, at_most, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B15.3-5",)
expected = {
    "mean_gap": between(0.3, 2.5, "distance of the means, in standard errors of the ensemble's"),
    "spread_ratio": between(0.8, 1.2, "deviation of the ensemble by that of the posterior, their mean over x"),
    "narrow_gap": between(2.0, 25.0, "distance of the means at width 4, in standard errors"),
    "left_to_train": at_most(0.02, "distance of the trained readouts from where training ends"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"members": 12, "width": 64, "steps": 300}, "gpu": {}}


@dataclass(frozen=True)
class Experiment:
    members: int = 150  # networks in the ensemble
    width: int = 512  # hidden units of each of two layers
    points: int = 10  # training points
    noise: float = 0.2  # standard deviation of the targets' noise
    steps: int = 1_500  # steps of gradient descent on the readouts

    def __call__(self, run: Run) -> dict[str, float]:
        data = curve(self.points, lambda x: (2 * x).sin() + x / 2, noise=self.noise, seed=run.seed, low=-2.0, high=2.0)
        assert data.y is not None
        x, t = data.x.double(), data.y.double()[:, 0]
        new = torch.linspace(-3, 3, 121, dtype=torch.float64)[:, None]
        network = fully_connected(2, Erf(), bias=0.5)
        posterior = GPRegression.fit(NNGP(network), x, t, noise=self.noise**2).predict(new)

        features = random_features(network, torch.cat([x, new]), self.width, self.members)
        seen, unseen = features[:, : len(x)], features[:, len(x) :]
        started, drawn, kept = self.start(features, t)
        weights = started
        rate = 1 / (torch.linalg.matrix_norm(seen, 2).square()[:, None] + self.noise**2)
        for step, _ in run.steps(self.steps):
            residual = torch.einsum("enp,ep->en", seen, weights) - drawn
            pull = torch.einsum("enp,en->ep", seen, residual) + self.noise**2 * (weights - started)
            weights = weights - rate * pull
            run.log(step, loss=residual.square().mean())
        functions = torch.einsum("enp,ep->en", unseen, weights)
        ends = torch.einsum("enp,ep->en", unseen, kept)

        run.figure(
            "posterior and ensemble",
            bands(x, t, new, posterior, functions),
            f"Left: the NNGP posterior, mean and two deviations. Right: {self.members} networks of width {self.width} "
            "of which only the readout was trained, some of them, their mean and two of their deviations.",
        )
        narrow = self.narrow_gaps(network, x, t, new, posterior)
        run.figure(
            "agreement against width",
            curves(
                {"distance of the means": (list(narrow), list(narrow.values()))},
                x_label="width",
                y_label="in standard errors of the ensemble",
                log_x=True,
            ),
            "An ensemble of narrow networks has another mean; with growing width only the error of sampling is left.",
        )
        ratio = functions.std(0) / posterior.variance.sqrt()
        run.note(
            "how a readout becomes a draw",
            "Each member has its own random hidden layers, begins at a random readout w₀ ~ N(0, I) and descends on "
            "‖Φw − t − ε‖² + σ²‖w − w₀‖² with noise ε of its own on the targets. Where it ends is a draw from the "
            "posterior of its readout, and over wide networks a draw from the NNGP posterior.",
        )
        return {
            "mean_gap": mean_gap(functions, posterior),
            "spread_ratio": float(ratio.mean()),
            "narrow_gap": narrow[4],
            "left_to_train": float((functions - ends).abs().max()),
        }

    def start(self, features: Tensor, t: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Random readouts, the targets with each member's own noise, and the readouts where training ends."""
        seen = features[:, : len(t)]
        began = torch.randn(len(features), features.shape[2], dtype=t.dtype)
        drawn = t + self.noise * torch.randn(len(features), len(t), dtype=t.dtype)
        gram = seen @ seen.mT + self.noise**2 * torch.eye(len(t), dtype=t.dtype)
        missing = drawn - torch.einsum("enp,ep->en", seen, began)
        return began, drawn, began + torch.einsum("enp,en->ep", seen, torch.linalg.solve(gram, missing))

    def narrow_gaps(
        self, network: Network, x: Tensor, t: Tensor, new: Tensor, posterior: Prediction
    ) -> dict[int, float]:
        """The distance of the means by width, of readouts trained to the end in closed form."""
        gaps = {}
        for width in (4, 16, 64, 256):
            features = random_features(network, torch.cat([x, new]), width, self.members)
            ends = self.start(features, t)[2]
            gaps[width] = mean_gap(torch.einsum("enp,ep->en", features[:, len(x) :], ends), posterior)
        return gaps


@torch.no_grad()
def random_features(network: Network, x: Tensor, width: int, members: int) -> Tensor:
    """What the last layers hear, their biases included, (members, n, width + 1): outputs are N(0, I) sums of it."""
    parts = []
    for _ in range(members):
        module = network.module((x.shape[1],), width).double()
        last = module[-1]
        assert isinstance(last, ScaledLinear)
        hidden = last.scale * module[:-1](x)
        parts.append(torch.cat([hidden, torch.full_like(hidden[:, :1], last.shift)], 1))
    return torch.stack(parts)


def mean_gap(functions: Tensor, posterior: Prediction) -> float:
    """The root mean square over x of the difference of means in standard errors of the ensemble's."""
    error = functions.std(0) / len(functions) ** 0.5
    return float(((functions.mean(0) - posterior.mean) / error).square().mean().sqrt())


def bands(x: Tensor, t: Tensor, new: Tensor, posterior: Prediction, functions: Tensor) -> "Figure":
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
