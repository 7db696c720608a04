"""Probabilistic PCA of handwritten digits: log-likelihood, samples and EM (book sec. 5.1)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.data import DataError, Dataset, TableSettings
from parnassus.latent.linear.pca import PCA
from parnassus.latent.linear.probabilistic_pca import PPCA, ppca_em_iterates
from parnassus.probability import uniform_samples
from parnassus.report import PALETTE, curves, image_grid, subplots
from parnassus.setting_types import AnyData
from parnassus.train import Positive, Run, at_least, at_most, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B5.1-1", "B5.1-2", "B5.1-3", "B5.1-4", "B5.1-6", "B5.1-9")
expected = {
    "gain_over_isotropic": at_least(29.0, "log-density of a test example minus that under an isotropic Gaussian, nats"),
    "best_size": between(48, 63, "number of components with the highest test log-likelihood"),
    "train_test_gap": between(0.2, 1.5, "training minus test log-likelihood, nats per example"),
    "em_min_increase": at_least(0.0, "smallest increase of the log-likelihood in an EM iteration"),
    "em_gap": at_most(1e-3, "closed-form minus final EM log-likelihood, nats per example"),
    "shrinkage": between(
        0.92, 0.96, "ratio of the norms of centred reconstructions from the posterior mean and by PCA"
    ),
}
profiles = {
    "smoke": {"max_iter": 30, "num_shown": 5},
    "gpu": {"data": "mnist", "grey_levels": 256, "max_iter": 300},
}


@dataclass(frozen=True)
class Experiment(TableSettings):
    data: AnyData = "digits"  # examples: name of a data set, or path of a file or folder
    image_size: Positive[int] | None = None  # resize the images of a folder to squares with sides of this many pixels
    grey_levels: Positive[int] = 17  # grey levels of the data, for dequantisation
    latent_dim: Positive[int] = 16  # dimension of the code of the evaluated model
    max_iter: Positive[int] = 150  # iterations of EM
    num_shown: Positive[int] = 10  # examples per row of figures

    def __call__(self, run: Run) -> dict[str, float]:
        data = self.load_data(self.image_size).to(run.device)
        train, test = (
            self._dequantise(split.x.flatten(1), run.seed + index)
            for index, split in enumerate((data.train, data.test))
        )
        features = train.shape[1]
        if features <= self.latent_dim:
            raise DataError(
                f"features must exceed latent_dim={self.latent_dim}; examples of {self.data} have {features}"
            )
        full = PCA.fit(train, features)
        sizes = [size for size in (1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 28, 32, 40, 48, 52, 56, 60, 63) if size < features]
        models = {size: PPCA.from_pca(full.truncate(size)) for size in sizes}
        train_values = {size: float(model.log_prob(train).mean()) for size, model in models.items()}
        test_values = {size: float(model.log_prob(test).mean()) for size, model in models.items()}
        lines = {"training": (sizes, list(train_values.values())), "test": (sizes, list(test_values.values()))}
        best = max(sizes, key=test_values.__getitem__)
        run.figure(
            "likelihood",
            curves(
                lines, x_label="components K", y_label="ln p(x) (nats per example)", marks={"best test value": best}
            ),
            "The test log-likelihood increases with the number of components nearly as much as the training "
            "log-likelihood, until the omitted variance is that of the dequantisation noise.",
        )
        model = PPCA.from_pca(full.truncate(self.latent_dim))
        run.figure(
            "spectrum",
            plot_spectrum(full, model),
            f"K = {self.latent_dim} eigenvalues are modelled exactly; the others are replaced by their mean, "
            f"σ² = {float(model.variance):.3g}.",
        )
        if len(data.shape) == 3:
            self._plot_samples(run, data, models, test)
        gaps, min_increase = self._fit_by_em(run, train)
        posterior_mean, projection = (
            model.reconstruct(test) - model.mean,
            full.truncate(self.latent_dim).reconstruct(test) - full.mean,
        )
        isotropic = _isotropic_gaussian(train).log_prob(test).mean()
        return {
            "gain_over_isotropic": test_values[self.latent_dim if self.latent_dim in test_values else best]
            - float(isotropic),
            "best_size": float(best),
            "train_test_gap": train_values[best] - test_values[best],
            "em_min_increase": min_increase,
            "em_gap": gaps[-1],
            "shrinkage": float((posterior_mean.norm(dim=1) / projection.norm(dim=1)).mean()),
        }

    def _dequantise(self, x: Tensor, seed: int) -> Tensor:
        """Add uniform noise of one grey level, so that the data have a density on [0, 1]."""
        noise = uniform_samples(*x.shape, seed=seed)
        return (x.double() * (self.grey_levels - 1) + noise.to(x.device)) / self.grey_levels

    def _plot_samples(self, run: Run, data: Dataset, models: dict[int, PPCA], test: Tensor) -> None:
        generator = torch.Generator(run.device).manual_seed(run.seed)
        rows = {"data": test[: self.num_shown]}
        for size in (2, 8, 16, 40):
            if size in models:
                rows[f"K = {size}"] = models[size].sample(self.num_shown, generator=generator)
        images = torch.cat(list(rows.values())).view(-1, *data.shape).clamp(0, 1)
        figure = image_grid(images, columns=self.num_shown, row_labels=list(rows))
        run.figure(
            "samples",
            figure,
            "Test examples and samples of W ν + μ + σ ε. With more components strokes appear and the noise decreases, "
            "but a single Gaussian does not separate the classes.",
        )

    def _fit_by_em(self, run: Run, x: Tensor) -> tuple[list[float], float]:
        """The gap to the closed form after each EM iteration from a random start, and the smallest increase."""
        maximum = float(PPCA.fit(x, self.latent_dim).log_prob(x).mean())
        models = ppca_em_iterates(x, self.latent_dim, num_iterations=self.max_iter, seed=run.seed)
        likelihoods = [float(model.log_prob(x).mean()) for model in models]
        gaps = [maximum - value for value in likelihoods]
        figure = curves(
            {"gap": (range(1, len(gaps)), [max(gap, 1e-12) for gap in gaps[1:]])},
            x_label="EM iteration",
            y_label="gap to the closed form (nats)",
            log_y=True,
        )
        run.figure("em", figure, "EM increases the log-likelihood in every iteration and converges to the closed form.")
        steps = torch.tensor(likelihoods, dtype=torch.float64).diff()
        return gaps, float(steps.min())


def _isotropic_gaussian(x: Tensor) -> PPCA:
    """An isotropic Gaussian: PPCA whose single column of W is 0."""
    return PPCA(x.mean(0), torch.zeros_like(x[0])[:, None], x.var(0, correction=0).mean())


def plot_spectrum(full: PCA, model: PPCA) -> "Figure":
    latent = model.W.shape[1]
    fitted = torch.linalg.eigvalsh(model.covariance).flip(0).cpu()
    eigenvalues = full.eigenvalues.cpu()
    figure, axes = subplots()
    ax = axes[0, 0]
    index = range(1, len(eigenvalues) + 1)
    ax.semilogy(index, eigenvalues, "o", color=PALETTE[0], markersize=4, label="eigenvalues of the data covariance")
    ax.semilogy(index, fitted, color=PALETTE[1], label="eigenvalues of C = W Wᵀ + σ² I")
    ax.axvline(latent + 0.5, color=PALETTE[7], linestyle="--", linewidth=1)
    ax.set(xlabel="i", ylabel="λ_i")
    ax.legend()
    return figure
