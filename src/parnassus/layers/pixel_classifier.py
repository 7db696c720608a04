"""A support vector machine on raw pixels, as a reference classifier of images."""

from jaxtyping import Float, Int
from sklearn.svm import SVC
from torch import Tensor

from parnassus.arrays import accepts_arrays


@accepts_arrays
def fit_classifier(images: Float[Tensor, "count *event"], labels: Int[Tensor, " count"] | None) -> SVC:
    """A support vector machine on raw pixels, fitted to at most 5,000 images."""
    subset, y = images[:5_000], require_labels(labels)[:5_000]
    return SVC(C=10.0).fit(subset.flatten(1).cpu().numpy(), y.cpu().numpy())


def classifier_accuracy(
    classifier: SVC, images: Float[Tensor, "count *event"], labels: Int[Tensor, " count"] | None
) -> float:
    """The fraction of images that the classifier assigns to their label."""
    return float(classifier.score(images.flatten(1).cpu().numpy(), require_labels(labels).cpu().numpy()))


def require_labels(labels: Int[Tensor, " count"] | None) -> Int[Tensor, " count"]:
    """Return the labels; raise a ValueError if there are none."""
    if labels is None:
        raise ValueError("labels must not be None; this metric needs labelled images")
    return labels
