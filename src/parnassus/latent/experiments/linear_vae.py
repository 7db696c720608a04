"""Linear VAE: training recovers probabilistic PCA with its principal axes (book sec. 5.2)."""

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity
from torch.optim import Adam

from parnassus.latent.linear.linear_autoencoder import LinearAutoencoder
from parnassus.latent.linear.linear_vae import LinearVAE, fit_by_lbfgs
from parnassus.latent.linear.pca import PCA
from parnassus.latent.linear.probabilistic_pca import PPCA
from parnassus.latent.linear.projection import principal_angles
from parnassus.probability import random_orthogonal
from parnassus.report import curves, heatmap
from parnassus.train import Positive, Run, at_least, at_most

covers = ("B5.2-3", "B5.1-6", "Z13.18")
expected = {
    "likelihood_gap": at_most(1e-8, "log-likelihood per row of PPCA minus that of the linear VAE, nats"),
    "bound_gap": at_most(1e-8, "log-likelihood per row of PPCA minus the ELBO of the linear VAE, nats"),
    "noise_variance_difference": at_most(1e-5, "relative difference of the noise variances"),
    "subspace_angle": at_most(1e-4, "largest angle to the principal subspace"),
    "axis_cosine": at_least(0.999999, "smallest cosine between a column of W and its principal axis"),
    "autoencoder_cosine": at_most(0.99, "smallest cosine for a linear autoencoder, which determines only the subspace"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 100, "num_lbfgs_rounds": 4}, "gpu": {}}


@dataclass(frozen=True)
class Experiment:
    num_features: Positive[int] = 12  # features per row
    latent_dim: Positive[int] = 4  # dimension of the code
    num_examples: Positive[int] = 500  # training examples
    steps: Positive[int] = 2_500  # full-batch steps of Adam
    learning_rate: Positive[float] = 0.02  # learning rate of Adam
    num_lbfgs_rounds: Positive[int] = 8  # rounds of 100 steps of L-BFGS after Adam

    def __call__(self, run: Run) -> dict[str, float]:
        x = self.sample_rows(run.seed).to(run.device)
        ppca, pca = PPCA.fit(x, self.latent_dim), PCA.fit(x, self.latent_dim)
        max_likelihood = ppca.log_prob(x).mean()

        linear_vae = LinearVAE(self.num_features, self.latent_dim).double()
        model, optimizer = run.prepare(linear_vae, partial(Adam, lr=self.learning_rate))
        for step, _ in run.steps(self.steps):
            run.update(optimizer, model.loss(x))
            if step % 10 == 0:
                run.record(step, **distances(model, x, ppca, pca))
        run.figure(
            "convergence",
            curves(
                {
                    "log-likelihood gap to PPCA": run.curve("likelihood_gap"),
                    "ELBO gap to the log-likelihood of PPCA": run.curve("bound_gap"),
                    "angle to the principal subspace": run.curve("subspace_angle"),
                    "1 − cosine to the principal axes": run.curve("axis_gap"),
                },
                x_label="step of Adam",
                y_label="distance",
                log_y=True,
            ),
            "The subspace converges first, then the axes within it: the ELBO is tight only at the principal axes.",
        )
        fit_by_lbfgs(model, x, num_rounds=self.num_lbfgs_rounds)
        last = distances(model, x, ppca, pca)

        autoencoder = LinearAutoencoder(self.num_features, self.latent_dim).double().to(run.device)
        fit_by_lbfgs(autoencoder, x, num_rounds=self.num_lbfgs_rounds)
        captions = {
            "linear VAE": "the columns of W are the principal axes, in arbitrary order",
            "linear autoencoder": "the columns of W span the principal subspace but are not the principal axes",
        }
        for name, W in (("linear VAE", model.W), ("linear autoencoder", autoencoder.decoder.weight)):
            labels = [f"{index + 1}" for index in range(self.latent_dim)]
            figure = heatmap(
                cosines(W.detach(), pca).round(decimals=3),
                row_labels=[f"column {label}" for label in labels],
                column_labels=[f"axis {label}" for label in labels],
                annotate=True,
            )
            run.figure(f"columns of the {name}", figure, f"|cosine| of columns and axes: {captions[name]}.")
        fitted = model.to_ppca()
        run.note(
            "comparison",
            f"Log-likelihood per row: {float(max_likelihood):.6f} for PPCA in closed form; that of the trained VAE is "
            f"smaller by {last['likelihood_gap']:.1e}. Noise variance: {float(ppca.variance):.5f} and "
            f"{float(fitted.variance):.5f}.",
        )
        return {
            "likelihood_gap": last["likelihood_gap"],
            "bound_gap": last["bound_gap"],
            "noise_variance_difference": abs(float(fitted.variance / ppca.variance) - 1),
            "subspace_angle": last["subspace_angle"],
            "axis_cosine": 1 - last["axis_gap"],
            "autoencoder_cosine": float(cosines(autoencoder.decoder.weight.detach(), pca).amax(1).min()),
        }

    def sample_rows(self, seed: int) -> Tensor:
        """Samples of a PPCA with standard deviations from 3 down to 1.2 along its axes, and noise of ½."""
        generator = torch.Generator().manual_seed(seed)
        axes = random_orthogonal(self.num_features, generator=generator)
        lengths = torch.linspace(3, 1.2, self.latent_dim, dtype=torch.float64)
        mean = torch.randn(self.num_features, generator=generator, dtype=torch.float64)
        model = PPCA(mean, axes[:, : self.latent_dim] * lengths, torch.tensor(0.25, dtype=torch.float64))
        return model.sample(self.num_examples, generator=generator)


@torch.no_grad()
def distances(model: LinearVAE, x: Tensor, ppca: PPCA, pca: PCA) -> dict[str, float]:
    """Differences to PPCA in log-likelihood, ELBO, subspace and axes, at least 1e-16 despite rounding."""
    max_likelihood = ppca.log_prob(x).mean()
    return {
        "likelihood_gap": max(float(max_likelihood - model.to_ppca().log_prob(x).mean()), 1e-16),
        "bound_gap": max(float(max_likelihood - model.elbo(x).mean()), 1e-16),
        "subspace_angle": float(principal_angles(model.W, pca.components).max()),
        "axis_gap": max(1 - float(cosines(model.W, pca).amax(1).min()), 1e-16),
    }


def cosines(W: Tensor, pca: PCA) -> Tensor:
    """|cos| of the angle between each column of W (rows) and each principal axis (columns)."""
    return cosine_similarity(W[:, :, None], pca.components[:, None, :], dim=0).abs()
