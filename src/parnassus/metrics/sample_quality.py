"""All measures of sample quality at once, with the feature network that they depend on."""

from dataclasses import dataclass

from parnassus.metrics.feature_network import Features
from parnassus.metrics.frechet import frechet_distance
from parnassus.metrics.inception_score import inception_score
from parnassus.metrics.kernel_distance import KernelDistance, kernel_distance
from parnassus.metrics.precision_recall import PrecisionRecall, precision_recall


@dataclass(frozen=True)
class SampleQuality:
    """Distances between samples and real images, valid only for the named feature network and these set sizes."""

    network: str
    num_real: int
    num_samples: int
    frechet: float
    kernel: KernelDistance
    coverage: PrecisionRecall
    score: float

    def table(self) -> list[dict[str, str | float]]:
        """Rows for a report."""
        return [
            {"measure": "Fréchet distance", "value": self.frechet, "best": "0"},
            {"measure": "kernel distance", "value": self.kernel.value, "best": "0"},
            {"measure": "standard error of the kernel distance", "value": self.kernel.error, "best": ""},
            {"measure": "precision", "value": self.coverage.precision, "best": "1"},
            {"measure": "recall", "value": self.coverage.recall, "best": "1"},
            {"measure": "classifier score", "value": self.score, "best": "number of classes"},
        ]

    def __str__(self) -> str:
        return (
            f"Fréchet distance {self.frechet:.3g}, kernel distance {self.kernel.value:.2g} ± {self.kernel.error:.1g}, "
            f"precision {self.coverage.precision:.3f}, recall {self.coverage.recall:.3f}, score {self.score:.2f}; "
            f"{self.num_samples:,} samples and {self.num_real:,} real images, features of {self.network}"
        )


def sample_quality(real: Features, samples: Features) -> SampleQuality:
    """All measures, in the features of one network."""
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
