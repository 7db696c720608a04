"""How complex a model may be: polynomial degree against sample size, and folds that choose (Zhao sec. 3)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.data.toy import polynomial
from parnassus.layers import LinearRegression, leave_one_out_residuals, polynomial_features
from parnassus.losses import mean_squared_error
from parnassus.optim import cross_validate
from parnassus.report import INK, PALETTE, curves, heatmap, subplots
from parnassus.train import Run, at_least, at_most, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("Z3.9", "Z3.10", "Z3.11", "Z3.12", "Z3.13", "Z3.14")
expected = {
    "best_degree": between(3, 3, "degree with the least error on new points, on average; the law is a cubic"),
    "folds_choose": between(3, 4, "degree that cross-validation chooses most often"),
    "price_of_choosing": between(0.95, 1.6, "median error of what cross-validation chose over that of the true degree"),
    "underfit": at_least(5.0, "error of a line on new points over the least"),
    "overfit": at_least(5.0, "error of the largest degree on new points over the least"),
    "gap_when_simple": at_most(0.1, "training error of a cubic short of its error on new points, much data, relative"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"draws": 2, "sizes": (20, 50), "k": 3, "degree": 12}, "gpu": {}}

Data = tuple[Tensor, Tensor]
FLOOR = 1e-5  # below which a perfect fit is drawn


@dataclass(frozen=True)
class Experiment:
    points: int = 30  # points to fit while the degree grows
    noise: float = 0.1  # standard deviation of their noise
    degree: int = 15  # largest degree
    sizes: tuple[int, ...] = (20, 30, 50, 80, 120, 200, 400, 1_000)  # numbers of points to compare
    k: int = 10  # folds of the cross-validation
    draws: int = 30  # data sets to average over

    def __call__(self, run: Run) -> dict[str, float]:
        fresh = self.rows(5_000, 10**6 + run.seed)
        degrees = range(1, self.degree + 1)
        errors = {size: self.errors(run, size, fresh) for size in sorted({*self.sizes, self.points})}
        trained, unseen = errors[self.points].median(0).values.unbind(-1)
        chosen, folds, left_out, price = self.choose(run, fresh)

        run.figure(
            "underfitting and overfitting",
            three_fits(self.rows(self.points, run.seed), (1, 3, self.degree)),
            "A noisy cubic: a line cannot follow it, a cubic can, the largest degree follows the noise.",
        )
        lines = {
            "training error": trained.clamp(min=FLOOR),
            "error on new points": unseen,
            f"{self.k}-fold estimate": folds,
            "leave one out, closed form": left_out,
        }
        by_degree = curves(
            {name: (degrees, line) for name, line in lines.items()},
            x_label="degree",
            y_label="mean squared error",
            log_y=True,
            marks={"the law's degree": 3.0},
        )
        by_degree.axes[0].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        run.figure(
            "error by degree",
            by_degree,
            f"Medians over {self.draws} data sets of {self.points} points. Training error only falls; the error on new "
            "points makes a U. Cross-validation sees the U without any new point.",
        )
        table = torch.stack([errors[size].median(0).values[:, 1] for size in self.sizes], 1)
        run.figure(
            "degree and sample size",
            heatmap(
                (table / self.noise**2).log10(),
                row_labels=[str(degree) for degree in degrees],
                column_labels=[str(size) for size in self.sizes],
                x_label="points",
                y_label="degree",
            ),
            "Error on new points, as a power of ten of the noise: 0 is as good as can be. Degrees below 3 stay wrong "
            "however many points there are; the higher the degree, the more points it needs.",
        )
        run.figure(
            "error by sample size",
            by_size(
                {
                    degree: torch.stack([errors[n].median(0).values[degree - 1] for n in self.sizes])
                    for degree in (1, 3, 12)
                },
                self.sizes,
            ),
            "Training error (dashed) and error on new points (solid). They meet from both sides as data grow: at once "
            "for a simple model, late for a complex one, and at a bad value for one that is too simple.",
        )
        counts = torch.bincount(torch.tensor(chosen), minlength=self.degree + 1)
        best = int(unseen.argmin())
        much = errors[max(self.sizes)].median(0).values[2]
        run.note(
            "what to see",
            f"Degree {best + 1} is best on new points. {self.k}-fold cross-validation, which sees {self.points} points "
            f"only, chose degree 3 in {int(counts[3])} of {self.draws} data sets and never one below "
            f"{min(chosen)}; its choice is typically {price:.2f} times as wrong as a cubic.",
        )
        return {
            "best_degree": float(best + 1),
            "folds_choose": float(counts.argmax()),
            "price_of_choosing": price,
            "underfit": float(unseen[0] / unseen[best]),
            "overfit": float(unseen[-1] / unseen[best]),
            "gap_when_simple": float(1 - much[0] / much[1]),
        }

    def rows(self, count: int, seed: int) -> Data:
        drawn = polynomial(count, noise=self.noise, seed=seed)
        assert drawn.y is not None
        return drawn.x[:, 0].double(), drawn.y[:, 0].double()

    def errors(self, run: Run, size: int, fresh: Data) -> Tensor:
        """Training error and error on new points: draws × degrees × 2."""
        sets = [self.rows(size, 1_000 * run.seed + draw) for draw in range(self.draws)]
        return torch.stack(
            [torch.tensor([both_errors(rows, fresh, degree) for degree in range(1, self.degree + 1)]) for rows in sets]
        )

    def choose(self, run: Run, fresh: Data) -> tuple[list[int], Tensor, Tensor, float]:
        """What cross-validation chooses, its median estimates, those of leaving one out, and the price of choosing."""
        chosen, folds, left_out, price = [], [], [], []
        for draw in range(self.draws):
            rows = self.rows(self.points, 1_000 * run.seed + draw)
            estimates = [self.estimate(rows, degree, draw) for degree in range(1, self.degree + 1)]
            chosen.append(min(range(self.degree), key=estimates.__getitem__) + 1)
            folds.append(estimates)
            left_out.append(
                [
                    float(leave_one_out_residuals(polynomial_features(rows[0], degree), rows[1]).square().mean())
                    for degree in range(1, self.degree + 1)
                ]
            )
            price.append(both_errors(rows, fresh, chosen[-1])[1] / both_errors(rows, fresh, 3)[1])
        by_folds, by_leaving_out = (torch.tensor(each).median(0).values for each in (folds, left_out))
        return chosen, by_folds, by_leaving_out, float(torch.tensor(price).median())

    def estimate(self, rows: Data, degree: int, seed: int) -> float:
        x, y = rows

        def errors(train: Tensor, held: Tensor) -> tuple[float, float]:
            return both_errors((x[train], y[train]), (x[held], y[held]), degree)

        source = torch.Generator().manual_seed(seed)
        return cross_validate(len(x), self.k, errors, generator=source).validation_error


def both_errors(seen: Data, unseen: Data, degree: int) -> tuple[float, float]:
    """Errors, on the points it was fitted to and on others, of the polynomial of that degree."""
    model = LinearRegression.fit(polynomial_features(seen[0], degree), seen[1])
    on_seen, on_unseen = (
        float(mean_squared_error(model.predict(polynomial_features(x, degree)), y)) for x, y in (seen, unseen)
    )
    return on_seen, on_unseen


def three_fits(rows: Data, degrees: tuple[int, int, int]) -> "Figure":
    fine = torch.linspace(-1, 1, 400, dtype=torch.float64)
    figure, axes = subplots(1, 3, size=(10.0, 3.2))
    for ax, degree, colour in zip(axes[0], degrees, PALETTE, strict=False):
        model = LinearRegression.fit(polynomial_features(rows[0], degree), rows[1])
        ax.plot(fine, model.predict(polynomial_features(fine, degree)), color=colour)
        ax.scatter(*rows, color=INK, s=12, zorder=3)
        ax.set(xlabel="x", title=f"degree {degree}", ylim=(float(rows[1].min()) - 0.5, float(rows[1].max()) + 0.5))
    return figure


def by_size(lines: dict[int, Tensor], sizes: tuple[int, ...]) -> "Figure":
    figure, axes = subplots()
    ax = axes[0, 0]
    for (degree, both), colour in zip(lines.items(), PALETTE, strict=False):
        ax.plot(sizes, both[:, 0], color=colour, linestyle="--", linewidth=1.2)
        ax.plot(sizes, both[:, 1], color=colour, label=f"degree {degree}", marker="o", markersize=4)
    ax.set(xlabel="points", ylabel="mean squared error", xscale="log", yscale="log")
    ax.legend()
    return figure
