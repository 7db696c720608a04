"""An image rebuilt from its principal components (book sec. 4.3)."""

from typing import Annotated, cast

import torch
from torch import Tensor

from parnassus.atlas.marks import probe
from parnassus.data import Dataset, open_data
from parnassus.latent.experiments import pca_on_digits
from parnassus.latent.pca import PCA
from parnassus.touch import Answer, Curves, Images, Numbers, Whole
from parnassus.train.trained import Trained


def _opened(trained: Trained) -> Dataset:
    return open_data(cast("pca_on_digits.Experiment", trained.experiment).data)


def _full(trained: Trained) -> PCA:
    """All components of the training examples; fewer are the first of these."""
    train = trained.once(_opened).train.x.flatten(1)
    return PCA.fit(train, train.shape[1])


def _features(trained: Trained) -> int:
    return trained.once(_opened).train.x[0].numel()


def _unseen(trained: Trained) -> int:
    return len(trained.once(_opened).test)


def _mean_errors(trained: Trained) -> Tensor:
    """The error on unseen examples for every number of components, their mean."""
    parts = trained.once(_opened).test.x.flatten(1).split(1_000)
    return torch.cat([trained.once(_full).errors(part) for part in parts]).mean(0)


@probe("pca_on_digits")
def rebuild_from_components(
    trained: Trained,
    components: Annotated[int, Whole("components kept, K", 1, _features)] = 16,
    example: Annotated[int, Whole("unseen example", 1, _unseen)] = 1,
) -> list[Answer]:
    """An unseen example rebuilt from its first K principal components (book sec. 4.3).

    Begin with K = 1 and add components until you can name the digit, then until you cannot tell the copy from the
    original. The error that is left is what the directions left out would have added.
    """
    data, full = trained.once(_opened), trained.once(_full)
    x = data.test.x[example - 1].flatten()[None]
    kept, errors = full.keep(components), full.errors(x)[0]
    mean_errors = trained.once(_mean_errors)
    numbers: dict[str, float | str] = {
        "variance explained": f"{100 * float(kept.explained.sum()):.1f} %",
        "squared error of this example": float(errors[components - 1]),
        "mean squared error of unseen examples": float(mean_errors[components - 1]),
        "eigenvalues left out, their sum": float(kept.residual),
    }
    lines = {"this example": errors, "mean of the unseen": mean_errors}
    return [
        *_pictures(data, kept, x, float(errors[components - 1])),
        Numbers(f"With {components} of {len(errors)} numbers", numbers),
        _by_size("What the error falls to", lines, components, "‖x − x̂‖²"),
        _by_size("Variance along each component", {"λ": full.eigenvalues}, components, "λ_i"),
    ]


def _pictures(data: Dataset, kept: PCA, x: Tensor, error: float) -> list[Images]:
    """The original, its copy and the component added last, where examples are images."""
    if len(data.shape) != 3 or data.shape[0] not in (1, 3):
        return []
    last = kept.components[:, -1]
    added = 0.5 + 0.5 * last / last.abs().max()
    images = torch.stack([x[0], kept.reconstruct(x)[0].clamp(0, 1), added]).view(-1, *data.shape)
    captions = ["original", f"rebuilt, squared error {error:.3g}", f"component {kept.components.shape[1]}"]
    return [Images("The example and its copy", images, captions, about="In the component, grey is zero.")]


def _by_size(title: str, values: dict[str, Tensor], marked: int, y_label: str) -> Curves:
    """Curves over the number of components; zeros that single precision did not quite meet are left out."""
    lines = {}
    for name, line in values.items():
        shown = line > pca_on_digits.ROUNDING
        lines[name] = ((shown.nonzero()[:, 0] + 1.0).tolist(), line[shown].tolist())
    return Curves(title, lines, x_label="component", y_label=y_label, log_y=True, marked=float(marked))
