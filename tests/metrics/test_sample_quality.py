import pytest
import torch

from parnassus.metrics.feature_network import FeatureNetwork, Features
from parnassus.metrics.sample_quality import sample_quality

from .stripes import striped_images


@pytest.fixture(scope="module")
def network() -> FeatureNetwork:
    x, label = striped_images(200)
    return FeatureNetwork.fit(x, label, name="stripes", steps=40, batch_size=32, width=4)


def test_real_images_score_better_than_noise_and_the_network_is_reported(network: FeatureNetwork) -> None:
    real, _ = striped_images(200)
    other, _ = striped_images(200, seed=2)
    similar = sample_quality(network(real), network(other))
    noise = sample_quality(network(real), network(torch.rand(200, 1, 8, 8)))
    assert similar.frechet_distance < noise.frechet_distance / 5
    assert similar.precision_recall.precision > noise.precision_recall.precision + 0.3
    assert similar.inception_score > 1.5
    assert "features of stripes" in str(similar)
    assert {row["metric"] for row in similar.table()} >= {"Fréchet distance", "kernel distance", "precision", "recall"}


def test_features_of_different_networks_raise_value_error(network: FeatureNetwork) -> None:
    features = network(striped_images(20)[0])
    other = Features("Inception-v3 (torchvision)", features.rows, features.log_probs)
    with pytest.raises(ValueError, match="same network; got real='stripes', samples='Inception-v3"):
        sample_quality(features, other)
