import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import Tensor, nn

from parnassus.convolution.feature_network import FeatureNetwork, Features, inception, sample_quality


def stripes(count: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Upright and level stripes under noise, a class each."""
    source = torch.Generator().manual_seed(seed)
    label = torch.arange(count) % 2
    wave = (torch.arange(8) % 4 < 2).float()
    upright = wave.expand(1, 8, 8)
    images = torch.where(label[:, None, None, None] == 0, upright, upright.mT)
    return (0.5 * images + 0.5 * torch.rand(images.shape, generator=source)).clamp(0, 1), label


@pytest.fixture(scope="module")
def judge() -> FeatureNetwork:
    x, label = stripes(200)
    return FeatureNetwork.fit(x, label, name="stripes", steps=40, batch=32, width=4)


def test_a_judge_learns_and_leaves_the_random_numbers_alone(judge: FeatureNetwork) -> None:
    x, label = stripes(100, seed=1)
    assert judge.accuracy(x, label) > 0.95
    before = torch.get_rng_state()
    FeatureNetwork.fit(x, label, name="stripes", steps=4, batch=8, width=4)
    assert torch.equal(before, torch.get_rng_state())


def test_real_images_are_nearer_than_noise_and_the_judge_is_named(judge: FeatureNetwork) -> None:
    real, _ = stripes(200)
    other, _ = stripes(200, seed=2)
    good = sample_quality(judge(real), judge(other))
    bad = sample_quality(judge(real), judge(torch.rand(200, 1, 8, 8)))
    assert good.frechet < bad.frechet / 5
    assert good.coverage.precision > bad.coverage.precision + 0.3
    assert good.score > 1.5
    assert "features of stripes" in str(good)
    assert {row["measure"] for row in good.table()} >= {"Fréchet distance", "kernel distance", "precision", "recall"}


def test_features_of_two_judges_are_never_mixed(judge: FeatureNetwork) -> None:
    mine = judge(stripes(20)[0])
    other = Features("Inception-v3 (torchvision)", mine.rows, mine.log_probs)
    with pytest.raises(ValueError, match="two judges do not compare; got those of stripes and of Inception-v3"):
        sample_quality(mine, other)


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


def test_inception_is_read_from_a_file_where_torchvision_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = TinyInception()
    torch.save(network.state_dict(), tmp_path / "inception.pt")
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "torchvision.models", None)
        with pytest.raises(ValueError, match="needs torchvision"):
            inception(tmp_path / "inception.pt")
    with pytest.raises(ValueError, match="is no file"):
        inception(tmp_path / "missing.pt")
    models = ModuleType("torchvision.models")
    models.inception_v3 = lambda weights, init_weights: TinyInception()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torchvision", ModuleType("torchvision"))
    monkeypatch.setitem(sys.modules, "torchvision.models", models)
    x = torch.rand(3, 1, 28, 28)
    seen = inception(tmp_path / "inception.pt")(x)
    assert seen.judge == "Inception-v3 (torchvision)"
    assert seen.rows.shape == (3, 4)
    torch.testing.assert_close(network.fc(seen.rows).log_softmax(1), seen.log_probs)


def test_what_cannot_be_judged_gets_a_sentence(judge: FeatureNetwork) -> None:
    with pytest.raises(ValueError, match="no images to judge"):
        judge(torch.zeros(0, 1, 8, 8))
    with pytest.raises(ValueError, match="no images to learn from"):
        FeatureNetwork.fit(torch.zeros(0, 1, 8, 8), torch.zeros(0, dtype=torch.long), name="none")
