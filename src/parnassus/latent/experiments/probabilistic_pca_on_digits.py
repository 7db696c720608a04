"""Probabilistic PCA gives handwritten digits a density: how likely, how it draws, how EM finds it (book sec. 5.1)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.data import DataError, Dataset, open_data
from parnassus.latent.pca import PCA
from parnassus.latent.ppca import PPCA, em_rounds
from parnassus.report import PALETTE, curves, image_grid, subplots
from parnassus.train import Run, at_least, at_most, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B5.1-1", "B5.1-2", "B5.1-3", "B5.1-4", "B5.1-6", "B5.1-9")
expected = {
    "gain_over_a_ball": at_least(29.0, "log-density of an unseen example over that of a round Gaussian, in nats"),
    "best_size": between(48, 63, "number of components with the highest density of unseen examples"),
    "unseen_below_seen": between(0.2, 1.5, "nats by which unseen examples are less likely than fitted ones"),
    "em_worst_step": at_least(0.0, "least change of the likelihood in a round of EM"),
    "em_gap": at_most(1e-3, "nats an example by which EM ends below the closed form"),
    "shrinkage": between(0.92, 0.96, "length of the posterior mean's copy over that of PCA's, both about the mean"),
}
profiles = {"smoke": {"rounds": 30, "shown": 5}, "gpu": {"data": "mnist", "levels": 256, "rounds": 300}}


@dataclass(frozen=True)
class Experiment:
    data: str = "digits"  # a built-in name, or your own folder or file
    levels: int = 17  # grey levels in the data; each is spread evenly over its width
    latent: int = 16  # numbers in the code of the model that is drawn
    rounds: int = 150  # rounds of EM
    shown: int = 10  # examples in a row of pictures

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data).to(run.device)
        train, test = (self._spread(part.flatten(1), run.seed + place) for place, part in enumerate(_parts(data)))
        features = train.shape[1]
        if features <= self.latent:
            raise DataError(f"{self.data} must have more than {self.latent} numbers an example; it has {features}.")
        full = PCA.fit(train, features)
        sizes = [size for size in (1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 28, 32, 40, 48, 52, 56, 60, 63) if size < features]
        models = {size: PPCA.from_pca(full.keep(size)) for size in sizes}
        seen = {size: float(model.log_prob(train).mean()) for size, model in models.items()}
        unseen = {size: float(model.log_prob(test).mean()) for size, model in models.items()}
        lines = {"fitted": (sizes, list(seen.values())), "unseen": (sizes, list(unseen.values()))}
        best = max(sizes, key=unseen.__getitem__)
        run.figure(
            "likelihood",
            curves(lines, x_label="components K", y_label="ln p(x), nats an example", marks={"best unseen": best}),
            "Each component adds likelihood, on unseen examples nearly as much as on fitted ones, until the rest holds "
            "no more than the spread of a grey level.",
        )
        chosen = PPCA.from_pca(full.keep(self.latent))
        run.figure(
            "spectrum",
            spectrum(full, chosen),
            f"K = {self.latent} eigenvalues stand above the noise floor σ² = {float(chosen.variance):.3g}, the mean of "
            "those left out; the model takes all others to lie on it.",
        )
        if len(data.shape) == 3:
            self._draw(run, data, models, test)
        gaps, worst = self._climb(run, train)
        copy, foot = chosen.reconstruct(test) - chosen.mean, full.keep(self.latent).reconstruct(test) - full.mean
        ball = _ball(train).log_prob(test).mean()
        return {
            "gain_over_a_ball": unseen[self.latent if self.latent in unseen else best] - float(ball),
            "best_size": float(best),
            "unseen_below_seen": seen[best] - unseen[best],
            "em_worst_step": worst,
            "em_gap": gaps[-1],
            "shrinkage": float((copy.norm(dim=1) / foot.norm(dim=1)).mean()),
        }

    def _spread(self, x: Tensor, seed: int) -> Tensor:
        """Whole grey levels have no density; each becomes an interval, so that all together fill [0, 1]."""
        noise = torch.rand(x.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        return (x.double() * (self.levels - 1) + noise.to(x.device)) / self.levels

    def _draw(self, run: Run, data: Dataset, models: dict[int, PPCA], test: Tensor) -> None:
        source = torch.Generator(run.device).manual_seed(run.seed)
        shown = {"data": test[: self.shown]}
        for size in (2, 8, 16, 40):
            if size in models:
                shown[f"K = {size}"] = models[size].sample(self.shown, generator=source)
        images = torch.cat(list(shown.values())).view(-1, *data.shape).clamp(0, 1)
        figure = image_grid(images, columns=self.shown, row_labels=list(shown))
        run.figure(
            "samples",
            figure,
            "Unseen examples, and draws of W ν + μ + σ ε: with more components strokes appear and the noise falls, but "
            "a single Gaussian knows no separate classes.",
        )

    def _climb(self, run: Run, x: Tensor) -> tuple[list[float], float]:
        """EM from a random start: how far below the closed form after every round, and its least step."""
        top = float(PPCA.fit(x, self.latent).log_prob(x).mean())
        models = em_rounds(x, self.latent, rounds=self.rounds, seed=run.seed)
        likelihoods = [float(model.log_prob(x).mean()) for model in models]
        gaps = [top - value for value in likelihoods]
        figure = curves(
            {"gap": (range(1, len(gaps)), [max(gap, 1e-12) for gap in gaps[1:]])},
            x_label="round of EM",
            y_label="nats below the closed form",
            log_y=True,
        )
        run.figure(
            "em", figure, "EM needs no eigensolver: the likelihood rises in every round, towards the closed form."
        )
        steps = torch.tensor(likelihoods, dtype=torch.float64).diff()
        return gaps, float(steps.min())


def _parts(data: Dataset) -> tuple[Tensor, Tensor]:
    return data.train.x, data.test.x


def _ball(x: Tensor) -> PPCA:
    """A round Gaussian: the PPCA of no components, its one column zero."""
    return PPCA(x.mean(0), torch.zeros_like(x[0])[:, None], x.var(0, correction=0).mean())


def spectrum(full: PCA, model: PPCA) -> "Figure":
    latent = model.W.shape[1]
    fitted = torch.linalg.eigvalsh(model.covariance).flip(0).cpu()
    eigenvalues = full.eigenvalues.cpu()
    figure, axes = subplots()
    ax = axes[0, 0]
    index = range(1, len(eigenvalues) + 1)
    ax.semilogy(index, eigenvalues, "o", color=PALETTE[0], markersize=4, label="eigenvalues of the data")
    ax.semilogy(index, fitted, color=PALETTE[1], label="those of C = W Wᵀ + σ² I")
    ax.axvline(latent + 0.5, color=PALETTE[7], linestyle="--", linewidth=1)
    ax.set(xlabel="i", ylabel="λ_i")
    ax.legend()
    return figure
