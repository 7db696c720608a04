"""The reconstruction of an example from its principal components (book sec. 4.3)."""

from typing import Annotated, Protocol, cast

import torch
from torch import Tensor

from parnassus.atlas.decorators import probe
from parnassus.data import Dataset
from parnassus.latent.linear.pca import EIGENVALUE_TOLERANCE, PCA
from parnassus.train.trained import TrainedRun
from parnassus.widgets import Answer, Curves, Images, IntSlider, Numbers


class _Settings(Protocol):
    image_size: int | None

    def load_data(self, image_size: int | None) -> Dataset: ...


def _load_data(trained: TrainedRun) -> Dataset:
    settings = cast("_Settings", trained.experiment)
    return settings.load_data(settings.image_size)


def _full_pca(trained: TrainedRun) -> PCA:
    """All components of the training examples."""
    train = trained.compute_once(_load_data).train.x.flatten(1)
    return PCA.fit(train, train.shape[1])


def _num_features(trained: TrainedRun) -> int:
    return trained.compute_once(_load_data).train.x[0].numel()


def _num_test(trained: TrainedRun) -> int:
    return len(trained.compute_once(_load_data).test)


def _mean_test_errors(trained: TrainedRun) -> Tensor:
    """The mean error on test examples for every number of components."""
    parts = trained.compute_once(_load_data).test.x.flatten(1).split(1_000)
    return torch.cat([trained.compute_once(_full_pca).reconstruction_errors(part) for part in parts]).mean(0)


@probe("pca_on_digits")
def reconstruct_from_components(
    trained: TrainedRun,
    components: Annotated[int, IntSlider("number of components, K", 1, _num_features)] = 16,
    example: Annotated[int, IntSlider("test example", 1, _num_test)] = 1,
) -> list[Answer]:
    """A test example reconstructed from its first K principal components (book sec. 4.3).

    Start with K = 1 and add components until the digit can be recognised, then until the reconstruction looks the same
    as the original. The remaining error is the sum of the squared coordinates along the omitted components.
    """
    data, full = trained.compute_once(_load_data), trained.compute_once(_full_pca)
    x = data.test.x[example - 1].flatten()[None]
    kept, errors = full.truncate(components), full.reconstruction_errors(x)[0]
    mean_errors = trained.compute_once(_mean_test_errors)
    values: dict[str, float | str] = {
        "explained variance": f"{100 * float(kept.explained_variance_ratio.sum()):.1f} %",
        "squared error of this example": float(errors[components - 1]),
        "mean squared error of test examples": float(mean_errors[components - 1]),
        "sum of the omitted eigenvalues": float(kept.residual_variance),
    }
    lines = {"this example": errors, "mean of the test examples": mean_errors}
    return [
        *_images(data, kept, x, float(errors[components - 1])),
        Numbers(f"With {components} of {len(errors)} components", values),
        _plot_by_component("Reconstruction error", lines, components, "‖x − x̂‖²"),
        _plot_by_component("Variance of each component", {"λ": full.eigenvalues}, components, "λ_i"),
    ]


def _images(data: Dataset, kept: PCA, x: Tensor, error: float) -> list[Images]:
    """The original, its reconstruction and the last component, where examples are images."""
    if len(data.shape) != 3 or data.shape[0] not in (1, 3):
        return []
    last = kept.components[:, -1]
    component = 0.5 + 0.5 * last / last.abs().max()
    images = torch.stack([x[0], kept.reconstruct(x)[0].clamp(0, 1), component]).view(-1, *data.shape)
    captions = ["original", f"reconstruction, squared error {error:.3g}", f"component {kept.components.shape[1]}"]
    return [Images("Original and reconstruction", images, captions, about="In the component, grey is zero.")]


def _plot_by_component(title: str, values: dict[str, Tensor], marked: int, y_label: str) -> Curves:
    """Curves over the number of components, without values that are 0 up to rounding."""
    lines = {}
    for name, line in values.items():
        positive = line > EIGENVALUE_TOLERANCE
        lines[name] = ((positive.nonzero()[:, 0] + 1.0).tolist(), line[positive].tolist())
    return Curves(title, lines, x_label="component", y_label=y_label, log_y=True, marked=float(marked))
