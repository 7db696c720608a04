"""Metrics of generated images: classifier accuracy, diversity, distance to training images."""

import torch
from jaxtyping import Float, Int
from sklearn.svm import SVC
from torch import Tensor


def fit_classifier(images: Float[Tensor, "count *event"], label: Int[Tensor, " count"] | None) -> SVC:
    """A support vector machine on raw pixels, fitted to at most 5,000 images."""
    subset, y = images[:5_000], _require_label(label)[:5_000]
    return SVC(C=10.0).fit(subset.flatten(1).cpu().numpy(), y.cpu().numpy())


def classifier_accuracy(
    classifier: SVC, images: Float[Tensor, "count *event"], label: Int[Tensor, " count"] | None
) -> float:
    """The fraction of images that the classifier assigns to their label."""
    return float(classifier.score(images.flatten(1).cpu().numpy(), _require_label(label).cpu().numpy()))


def within_class_std(images: Float[Tensor, "count *event"], label: Int[Tensor, " count"] | None) -> Float[Tensor, ""]:
    """The standard deviation of pixels within classes, over all pixels and classes (diversity)."""
    y = _require_label(label)
    variances = [images[y == index].flatten(1).var(0).mean() for index in y.unique()]
    return torch.stack(variances).mean().sqrt()


def nearest_distance(images: Float[Tensor, "count *event"], real: Float[Tensor, "real *event"]) -> Float[Tensor, ""]:
    """The median distance to the nearest `real` image; 0 for copies."""
    return torch.cdist(images.flatten(1), real.flatten(1)).amin(1).median()


def _require_label(label: Tensor | None) -> Tensor:
    if label is None:
        raise ValueError("label must not be None; this metric needs labelled images")
    return label
