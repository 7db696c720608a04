"""All metrics of sample quality at once, with the feature network that they depend on."""

from dataclasses import dataclass

from parnassus.metrics.feature_network import Features
from parnassus.metrics.frechet import frechet_distance
from parnassus.metrics.inception_score import inception_score
from parnassus.metrics.kernel_distance import KernelDistance, kernel_distance
from parnassus.metrics.precision_recall import PrecisionRecall, precision_recall


@dataclass(frozen=True)
class SampleQuality:
    """Metrics of samples against real images, comparable only for the same feature network and set sizes.

    >>> distance = KernelDistance(0.02, 0.001)
    >>> SampleQuality("a network", 1_000, 1_000, 12.5, distance, PrecisionRecall(0.8, 0.6), 7.5).frechet_distance
    12.5
    """

    network: str
    num_real: int
    num_samples: int
    frechet_distance: float
    kernel_distance: KernelDistance
    precision_recall: PrecisionRecall
    inception_score: float

    def table(self) -> list[dict[str, str | float]]:
        """Rows for a report."""
        kernel, precision_recall = self.kernel_distance, self.precision_recall
        return [
            {"metric": "Fréchet distance", "value": self.frechet_distance, "best": "0"},
            {"metric": "kernel distance", "value": kernel.value, "best": "0"},
            {"metric": "standard error of the kernel distance", "value": kernel.standard_error, "best": ""},
            {"metric": "precision", "value": precision_recall.precision, "best": "1"},
            {"metric": "recall", "value": precision_recall.recall, "best": "1"},
            {"metric": "classifier score", "value": self.inception_score, "best": "number of classes"},
        ]

    def __str__(self) -> str:
        kernel, precision_recall = self.kernel_distance, self.precision_recall
        return (
            f"Fréchet distance {self.frechet_distance:.3g}, "
            f"kernel distance {kernel.value:.2g} ± {kernel.standard_error:.1g}, "
            f"precision {precision_recall.precision:.3f}, recall {precision_recall.recall:.3f}, "
            f"classifier score {self.inception_score:.2f}; "
            f"{self.num_samples:,} samples and {self.num_real:,} real images, features of {self.network}"
        )


def sample_quality(real: Features, samples: Features) -> SampleQuality:
    """All metrics, in the features of one network."""
    if real.network != samples.network:
        raise ValueError(
            f"features must come from the same network; got real={real.network!r}, samples={samples.network!r}"
        )
    return SampleQuality(
        real.network,
        len(real.rows),
        len(samples.rows),
        frechet_distance(real.rows, samples.rows),
        kernel_distance(real.rows, samples.rows),
        precision_recall(real.rows, samples.rows),
        inception_score(samples.log_probs),
    )
