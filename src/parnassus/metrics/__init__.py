"""Sample quality: Fréchet and kernel distances, precision and recall in the features of a network."""

from parnassus.metrics.feature_network import FeatureNetwork, Features, inception
from parnassus.metrics.frechet import frechet_distance, gaussian_frechet_distance
from parnassus.metrics.inception_score import inception_score
from parnassus.metrics.kernel_distance import KernelDistance, kernel_distance
from parnassus.metrics.precision_recall import PrecisionRecall, precision_recall
from parnassus.metrics.sample_quality import SampleQuality, sample_quality

__all__ = [
    "FeatureNetwork",
    "Features",
    "KernelDistance",
    "PrecisionRecall",
    "SampleQuality",
    "frechet_distance",
    "gaussian_frechet_distance",
    "inception",
    "inception_score",
    "kernel_distance",
    "precision_recall",
    "sample_quality",
]
