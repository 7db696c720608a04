"""How many components do the data have? Held-out likelihood, BIC and a share of variance compared (book sec. 5.1)."""

from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor

from parnassus.latent.latent_size import bic_by_size, likelihood_by_size
from parnassus.latent.pca import PCA
from parnassus.latent.ppca import PPCA
from parnassus.latent.spectrum import spectrum_by_eigh
from parnassus.report import curves
from parnassus.train import Run, at_least, at_most, reported

covers = ("B5.1-8",)
expected = {
    "bic_right": at_least(0.95, "share of the largest data sets whose true size BIC finds"),
    "held_out_right": at_least(0.75, "the same for the likelihood of held-out rows"),
    "share_of_variance_right": at_most(0.05, "the same for the rule of 95 % of the variance"),
    "bic_right_with_few_rows": reported("the same for BIC with the fewest rows of the sweep"),
    "held_out_right_with_few_rows": reported("the same for held-out rows, with the fewest"),
    "fitted_likelihood_right": at_most(0.0, "the same for the likelihood of the fitted rows themselves"),
}
profiles = {"smoke": {"repeats": 4, "most": 400}, "gpu": {"repeats": 100}}
RULES = ("BIC", "held-out likelihood", "95 % of the variance", "likelihood of the fitted rows")


@dataclass(frozen=True)
class Experiment:
    features: int = 20  # numbers in a row
    latent: int = 5  # true size of the code
    noise: float = 1.0  # deviation of the noise; the directions of the code have deviations of 3 down to 1
    most: int = 3_200  # rows of the largest data set; each smaller one has half as many, down to 50
    repeats: int = 40  # data sets of each size

    def __call__(self, run: Run) -> dict[str, float]:
        if not 1 <= self.latent < self.features - 1 or self.most < 50:
            sizes = f"latent={self.latent}, features={self.features}, most={self.most}"
            raise ValueError(f"need 1 ≤ latent < features − 1 and most ≥ 50; got {sizes}")
        rows = [self.most >> halvings for halvings in reversed(range(20)) if self.most >> halvings >= 50]
        source = torch.Generator().manual_seed(run.seed)
        chosen = {rule: torch.zeros(len(rows), self.repeats) for rule in RULES}
        for place, repeat in product(range(len(rows)), range(self.repeats)):
            found = self.choices(self.draw(2 * rows[place], source))
            for rule in RULES:
                chosen[rule][place, repeat] = found[rule]
        right = {rule: (sizes == self.latent).double().mean(1) for rule, sizes in chosen.items()}
        figure = curves(
            {rule: (rows, share) for rule, share in right.items()},
            x_label="rows",
            y_label=f"share of data sets in which K = {self.latent} is found",
            log_x=True,
        )
        run.figure(
            "how often each rule is right",
            figure,
            f"{self.repeats} data sets of each size. Rules that weigh the fit against its price find the true size "
            "once the rows suffice; the last two never do: a fixed share of the variance answers another question.",
        )
        self._draw_criteria(run, self.draw(2 * rows[-1], source))
        middle = {rule: float(sizes[-1].mean()) for rule, sizes in chosen.items()}
        table: list[dict[str, str | float]] = [
            {"rule": rule, f"mean K with {rows[-1]} rows": middle[rule], "right": float(right[rule][-1])}
            for rule in RULES
        ]
        run.table("with the most rows", table, f"The true size is {self.latent}.")
        return {
            "bic_right": float(right["BIC"][-1]),
            "held_out_right": float(right["held-out likelihood"][-1]),
            "share_of_variance_right": float(right["95 % of the variance"][-1]),
            "bic_right_with_few_rows": float(right["BIC"][0]),
            "held_out_right_with_few_rows": float(right["held-out likelihood"][0]),
            "fitted_likelihood_right": float(right["likelihood of the fitted rows"][-1]),
        }

    def draw(self, count: int, source: torch.Generator) -> Tensor:
        """Rows of a PPCA along axes of its own."""
        size = (self.features, self.features)
        axes: Tensor = torch.linalg.qr(torch.randn(size, generator=source, dtype=torch.float64))[0]
        lengths = torch.linspace(3, 1, self.latent, dtype=torch.float64)
        noise = torch.tensor(self.noise**2, dtype=torch.float64)
        model = PPCA(axes.new_zeros(self.features), axes[:, : self.latent] * lengths, noise)
        return model.sample(count, generator=source)

    def choices(self, x: Tensor) -> dict[str, int]:
        """The size that each rule names; the second half of the rows is held out, for all alike."""
        fitted, held_out = x.chunk(2)
        eigenvalues = spectrum_by_eigh(fitted).eigenvalues
        shares = eigenvalues.cumsum(0) / eigenvalues.sum()
        return {
            "BIC": int(bic_by_size(eigenvalues, len(fitted)).argmin()),
            "held-out likelihood": int(self.held_out(fitted, held_out).argmax()) + 1,
            "95 % of the variance": int((shares < 0.95).sum()) + 1,
            "likelihood of the fitted rows": int(likelihood_by_size(eigenvalues, len(fitted)).argmax()),
        }

    def held_out(self, fitted: Tensor, held_out: Tensor) -> Tensor:
        """The mean log-density of the held-out rows for K = 1 … N − 1."""
        full = PCA.fit(fitted, self.features)
        models = [PPCA.from_pca(full.keep(size)) for size in range(1, self.features)]
        return torch.stack([model.log_prob(held_out).mean() for model in models])

    def _draw_criteria(self, run: Run, x: Tensor) -> None:
        fitted, held_out = x.chunk(2)
        eigenvalues, count = spectrum_by_eigh(fitted).eigenvalues, len(fitted)
        sizes = range(1, self.features)
        lines: dict[str, tuple[object, object]] = {
            "fitted rows": (sizes, likelihood_by_size(eigenvalues, count)[1:] / count),
            "held-out rows": (sizes, self.held_out(fitted, held_out)),
            "−BIC / 2": (sizes, -bic_by_size(eigenvalues, count)[1:] / (2 * count)),
        }
        figure = curves(lines, x_label="K", y_label="nats a row", marks={"truth": self.latent})
        run.figure(
            "one data set",
            figure,
            f"{count} rows. The likelihood of fitted rows never falls; that of others and the criterion have a top.",
        )
