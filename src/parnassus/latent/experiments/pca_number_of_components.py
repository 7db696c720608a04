"""Number of principal components by held-out likelihood, BIC and explained variance (book sec. 5.1)."""

from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor

from parnassus.latent.linear.covariance_spectrum import spectrum_by_eigh
from parnassus.latent.linear.number_of_components import bic_by_size, log_likelihood_by_size
from parnassus.latent.linear.pca import PCA
from parnassus.latent.linear.probabilistic_pca import PPCA
from parnassus.probability import random_orthogonal
from parnassus.report import curves
from parnassus.train import Positive, Run, at_least, at_most, no_band

covers = ("B5.1-8",)
expected = {
    "bic_accuracy": at_least(0.95, "fraction of the largest data sets in which BIC selects the true number"),
    "held_out_accuracy": at_least(
        0.75, "fraction of the largest data sets in which the held-out likelihood selects the true number"
    ),
    "explained_variance_accuracy": at_most(
        0.05, "fraction of the largest data sets in which 95 % explained variance selects the true number"
    ),
    "bic_accuracy_few_rows": no_band("fraction of the smallest data sets in which BIC selects the true number"),
    "held_out_accuracy_few_rows": no_band(
        "fraction of the smallest data sets in which the held-out likelihood selects the true number"
    ),
    "training_likelihood_accuracy": at_most(
        0.0, "fraction of the largest data sets in which the training likelihood selects the true number"
    ),
}
profiles = {"smoke": {"num_repeats": 4, "max_examples": 400}, "gpu": {"num_repeats": 100}}
RULES = ("BIC", "held-out likelihood", "95 % explained variance", "training likelihood")


@dataclass(frozen=True)
class Experiment:
    num_features: Positive[int] = 20  # features per row
    latent_dim: Positive[int] = 5  # true number of components
    noise_std: Positive[float] = 1.0  # standard deviation of the noise; those of the components go from 3 down to 1
    max_examples: Positive[int] = 3_200  # rows of the largest data set; halved repeatedly, down to 50
    num_repeats: Positive[int] = 40  # data sets per size

    def __call__(self, run: Run) -> dict[str, float]:
        if not 1 <= self.latent_dim < self.num_features - 1 or self.max_examples < 50:
            sizes = f"latent_dim={self.latent_dim}, num_features={self.num_features}, max_examples={self.max_examples}"
            raise ValueError(f"requires 1 ≤ latent_dim < num_features − 1 and max_examples ≥ 50; got {sizes}")
        rows = [
            self.max_examples >> halvings for halvings in reversed(range(20)) if self.max_examples >> halvings >= 50
        ]
        generator = torch.Generator().manual_seed(run.seed)
        chosen = {rule: torch.zeros(len(rows), self.num_repeats) for rule in RULES}
        for index, repeat in product(range(len(rows)), range(self.num_repeats)):
            selected = self.select_sizes(self.sample_rows(2 * rows[index], generator))
            for rule in RULES:
                chosen[rule][index, repeat] = selected[rule]
        right = {rule: (sizes == self.latent_dim).double().mean(1) for rule, sizes in chosen.items()}
        figure = curves(
            {rule: (rows, fraction) for rule, fraction in right.items()},
            x_label="rows",
            y_label=f"fraction of data sets in which K = {self.latent_dim} is selected",
            log_x=True,
        )
        run.figure(
            "selection",
            figure,
            f"{self.num_repeats} data sets per size. BIC and the held-out likelihood select the true number with "
            "enough rows; a fixed explained variance and the training likelihood do not.",
        )
        self._plot_criteria(run, self.sample_rows(2 * rows[-1], generator))
        mean_size = {rule: float(sizes[-1].mean()) for rule, sizes in chosen.items()}
        table: list[dict[str, str | float]] = [
            {"rule": rule, f"mean K with {rows[-1]} rows": mean_size[rule], "fraction correct": float(right[rule][-1])}
            for rule in RULES
        ]
        run.table("largest data sets", table, f"The true number of components is {self.latent_dim}.")
        return {
            "bic_accuracy": float(right["BIC"][-1]),
            "held_out_accuracy": float(right["held-out likelihood"][-1]),
            "explained_variance_accuracy": float(right["95 % explained variance"][-1]),
            "bic_accuracy_few_rows": float(right["BIC"][0]),
            "held_out_accuracy_few_rows": float(right["held-out likelihood"][0]),
            "training_likelihood_accuracy": float(right["training likelihood"][-1]),
        }

    def sample_rows(self, count: int, generator: torch.Generator) -> Tensor:
        """Samples of a PPCA model with random axes."""
        axes = random_orthogonal(self.num_features, generator=generator)
        lengths = torch.linspace(3, 1, self.latent_dim, dtype=torch.float64)
        noise = torch.tensor(self.noise_std**2, dtype=torch.float64)
        model = PPCA(axes.new_zeros(self.num_features), axes[:, : self.latent_dim] * lengths, noise)
        return model.sample(count, generator=generator)

    def select_sizes(self, x: Tensor) -> dict[str, int]:
        """The number of components that each rule selects; the second half of the rows is held out for all rules."""
        train, held_out = x.chunk(2)
        eigenvalues = spectrum_by_eigh(train).eigenvalues
        explained = eigenvalues.cumsum(0) / eigenvalues.sum()
        return {
            "BIC": int(bic_by_size(eigenvalues, len(train)).argmin()),
            "held-out likelihood": int(self.held_out_log_likelihood(train, held_out).argmax()) + 1,
            "95 % explained variance": int((explained < 0.95).sum()) + 1,
            "training likelihood": int(log_likelihood_by_size(eigenvalues, len(train)).argmax()),
        }

    def held_out_log_likelihood(self, train: Tensor, held_out: Tensor) -> Tensor:
        """Mean log-likelihood of the held-out rows for K = 1 … N − 1."""
        full = PCA.fit(train, self.num_features)
        models = [PPCA.from_pca(full.truncate(size)) for size in range(1, self.num_features)]
        return torch.stack([model.log_prob(held_out).mean() for model in models])

    def _plot_criteria(self, run: Run, x: Tensor) -> None:
        train, held_out = x.chunk(2)
        eigenvalues, count = spectrum_by_eigh(train).eigenvalues, len(train)
        sizes = range(1, self.num_features)
        lines: dict[str, tuple[object, object]] = {
            "training rows": (sizes, log_likelihood_by_size(eigenvalues, count)[1:] / count),
            "held-out rows": (sizes, self.held_out_log_likelihood(train, held_out)),
            "−BIC / 2": (sizes, -bic_by_size(eigenvalues, count)[1:] / (2 * count)),
        }
        figure = curves(lines, x_label="K", y_label="nats per row", marks={"true K": self.latent_dim})
        run.figure(
            "criteria",
            figure,
            f"Data set of {count} rows. The training likelihood never decreases with K; the other two have a maximum.",
        )
