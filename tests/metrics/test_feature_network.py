import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import Tensor, nn

from parnassus.metrics.feature_network import FeatureNetwork, inception

from .stripes import striped_images


@pytest.fixture(scope="module")
def network() -> FeatureNetwork:
    x, label = striped_images(200)
    return FeatureNetwork.fit(x, label, name="stripes", steps=40, batch_size=32, width=4)


def test_training_does_not_change_the_global_random_state(network: FeatureNetwork) -> None:
    x, label = striped_images(100, seed=1)
    assert network.accuracy(x, label) > 0.95
    state = torch.get_rng_state()
    FeatureNetwork.fit(x, label, name="stripes", steps=4, batch_size=8, width=4)
    assert torch.equal(state, torch.get_rng_state())


class TinyInception(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 1)
        self.fc = nn.Linear(4, 10)

    def forward(self, x: Tensor) -> Tensor:
        assert x.shape[1:] == (3, 299, 299)
        assert float(x.min()) < 0
        logits: Tensor = self.fc(self.stem(x).mean((2, 3)))
        return logits


def test_inception_is_loaded_from_a_local_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = TinyInception()
    torch.save(network.state_dict(), tmp_path / "inception.pt")
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "torchvision.models", None)
        with pytest.raises(ValueError, match="needs torchvision"):
            inception(tmp_path / "inception.pt")
    with pytest.raises(ValueError, match="not a file"):
        inception(tmp_path / "missing.pt")
    models = ModuleType("torchvision.models")
    models.inception_v3 = lambda weights, init_weights: TinyInception()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torchvision", ModuleType("torchvision"))
    monkeypatch.setitem(sys.modules, "torchvision.models", models)
    x = torch.rand(3, 1, 28, 28)
    features = inception(tmp_path / "inception.pt")(x)
    assert features.network == "Inception-v3 (torchvision)"
    assert features.rows.shape == (3, 4)
    torch.testing.assert_close(network.fc(features.rows).log_softmax(1), features.log_probs)


def test_empty_inputs_raise_value_error(network: FeatureNetwork) -> None:
    with pytest.raises(ValueError, match="features need at least one"):
        network(torch.zeros(0, 1, 8, 8))
    with pytest.raises(ValueError, match="training needs at least one"):
        FeatureNetwork.fit(torch.zeros(0, 1, 8, 8), torch.zeros(0, dtype=torch.long), name="none")
