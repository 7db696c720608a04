"""A linear variational autoencoder, trained, is probabilistic PCA with its principal axes (book sec. 5.2)."""

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity
from torch.optim import Adam

from parnassus.latent.linear_autoencoder import LinearAutoencoder
from parnassus.latent.linear_vae import LinearVAE, train_exactly
from parnassus.latent.pca import PCA
from parnassus.latent.ppca import PPCA
from parnassus.latent.projection import principal_angles
from parnassus.report import curves, heatmap
from parnassus.train import Run, at_least, at_most

covers = ("B5.2-3", "B5.1-6", "Z13.18")
expected = {
    "likelihood_gap": at_most(1e-8, "nats a row below PPCA's closed form"),
    "bound_gap": at_most(1e-8, "nats a row by which the bound lies below PPCA's log-likelihood"),
    "noise_gap": at_most(1e-5, "difference of the noise variances, relative"),
    "subspace_angle": at_most(1e-4, "largest angle to the principal subspace"),
    "axis_cosine": at_least(0.999999, "least cosine of a column of W to its principal axis"),
    "autoencoder_cosine": at_most(0.99, "the same for an autoencoder without noise, which finds the plane alone"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 100, "rounds": 4}, "gpu": {}}


@dataclass(frozen=True)
class Experiment:
    features: int = 12  # numbers in a row
    latent: int = 4  # numbers in the code
    rows: int = 500  # rows to learn from
    steps: int = 2_500  # steps of Adam, each over all rows
    lr: float = 0.02  # its learning rate
    rounds: int = 8  # rounds of 100 steps of L-BFGS at the end, for the last digits

    def __call__(self, run: Run) -> dict[str, float]:
        x = self.draw(run.seed).to(run.device)
        best, pca = PPCA.fit(x, self.latent), PCA.fit(x, self.latent)
        top = best.log_prob(x).mean()

        built = LinearVAE(self.features, self.latent).double()
        model, optimizer = run.prepare(built, partial(Adam, lr=self.lr))
        for step, _ in run.steps(self.steps):
            run.update(optimizer, model.loss(x))
            if step % 10 == 0:
                run.record(step, **distances(model, x, best, pca))
        run.figure(
            "on the way",
            curves(
                {
                    "likelihood below PPCA's": run.curve("likelihood_gap"),
                    "bound below PPCA's likelihood": run.curve("bound_gap"),
                    "angle to the subspace": run.curve("subspace_angle"),
                    "1 − cosine to the axes": run.curve("axis_gap"),
                },
                x_label="step of Adam",
                y_label="distance",
                log_y=True,
            ),
            "The plane comes first; the axes inside it follow, for only at the axes is the bound tight.",
        )
        train_exactly(model, x, rounds=self.rounds)
        last = distances(model, x, best, pca)

        plain = LinearAutoencoder(self.features, self.latent).double().to(run.device)
        descend_autoencoder(plain, x, rounds=self.rounds)
        captions = {
            "linear VAE": "the columns of the VAE are the principal axes, in an order of their own",
            "linear autoencoder": "those of an autoencoder without noise span the same plane and are no axes",
        }
        for name, W in (("linear VAE", model.W), ("linear autoencoder", plain.decoder.weight)):
            labels = [f"{index + 1}" for index in range(self.latent)]
            figure = heatmap(
                cosines(W.detach(), pca).round(decimals=3),
                row_labels=[f"column {label}" for label in labels],
                column_labels=[f"axis {label}" for label in labels],
                annotate=True,
            )
            run.figure(f"columns of the {name}", figure, f"|cos| of the angles: {captions[name]}.")
        found = model.ppca()
        run.note(
            "what to see",
            f"Log-likelihood of a row: PPCA {float(top):.6f} in closed form, the trained VAE {float(top):.6f} less "
            f"{last['likelihood_gap']:.1e}. Noise variance: {float(best.variance):.5f}, {float(found.variance):.5f}.",
        )
        return {
            "likelihood_gap": last["likelihood_gap"],
            "bound_gap": last["bound_gap"],
            "noise_gap": abs(float(found.variance / best.variance) - 1),
            "subspace_angle": last["subspace_angle"],
            "axis_cosine": 1 - last["axis_gap"],
            "autoencoder_cosine": float(cosines(plain.decoder.weight.detach(), pca).amax(1).min()),
        }

    def draw(self, seed: int) -> Tensor:
        """Rows of a PPCA whose directions have deviations of 3 down to 1.2, with noise of deviation ½."""
        source = torch.Generator().manual_seed(seed)
        size = (self.features, self.features)
        axes: Tensor = torch.linalg.qr(torch.randn(size, generator=source, dtype=torch.float64))[0]
        lengths = torch.linspace(3, 1.2, self.latent, dtype=torch.float64)
        mean = torch.randn(self.features, generator=source, dtype=torch.float64)
        model = PPCA(mean, axes[:, : self.latent] * lengths, torch.tensor(0.25, dtype=torch.float64))
        return model.sample(self.rows, generator=source)


@torch.no_grad()
def distances(model: LinearVAE, x: Tensor, best: PPCA, pca: PCA) -> dict[str, float]:
    """How far from PPCA, in likelihood, bound, plane and axes; rounding may end a hair above the top."""
    top = best.log_prob(x).mean()
    return {
        "likelihood_gap": max(float(top - model.ppca().log_prob(x).mean()), 1e-16),
        "bound_gap": max(float(top - model.elbo(x).mean()), 1e-16),
        "subspace_angle": float(principal_angles(model.W, pca.components).max()),
        "axis_gap": max(1 - float(cosines(model.W, pca).amax(1).min()), 1e-16),
    }


def cosines(W: Tensor, pca: PCA) -> Tensor:
    """|cos| of the angle between each column (row of the answer) and each principal axis."""
    return cosine_similarity(W[:, :, None], pca.components[:, None, :], dim=0).abs()


def descend_autoencoder(model: LinearAutoencoder, x: Tensor, *, rounds: int) -> None:
    """Least squares by L-BFGS over all rows."""
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=100, line_search_fn="strong_wolfe")

    def closure() -> float:
        optimizer.zero_grad()
        loss = model.loss(x)
        loss.backward()
        return float(loss.detach())

    for _ in range(rounds):
        optimizer.step(closure)
