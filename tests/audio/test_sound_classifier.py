"""Sound classifiers: front ends, cropping, training and classification of WAV files."""

import io
import wave
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
import torch
from torch import Tensor, nn

from parnassus.audio import (
    MFCC,
    LogMelSpectrogram,
    SoundClassifier,
    WavePatches,
    cepstra,
    companded_levels,
    crop_and_normalise,
    mu_law_encode,
)
from parnassus.audio.experiments import sound_classifier
from parnassus.data import DataError, read_wav
from parnassus.train.sample_predict_evaluate import Input, ResultRow
from parnassus.train.trained import TrainedRun

RATE, SAMPLES = 8_000, 1_600
NAME = "sound_classifier"


def noise(*shape: int) -> Tensor:
    return 2 * torch.rand(*shape, generator=torch.Generator().manual_seed(0)) - 1


def make_frontends() -> list[nn.Module]:
    spectrum = LogMelSpectrogram(20, window=256, rate=RATE)
    return [spectrum, MFCC(spectrum, 13), WavePatches(128)]


def test_frontend_outputs_are_bands_cepstra_and_patches() -> None:
    waves = noise(3, SAMPLES)
    spectrum, coefficients, patches = (frontend(waves) for frontend in make_frontends())
    assert spectrum.shape == (3, 20, 13)
    torch.testing.assert_close(coefficients, cepstra(spectrum, 13))
    assert patches.shape == (3, 128, 12)
    torch.testing.assert_close(patches[1, :, 2], companded_levels(mu_law_encode(waves[1, 256:384])))


@pytest.mark.parametrize("frontend", make_frontends(), ids=lambda frontend: type(frontend).__name__)
def test_features_are_standardised(frontend: nn.Module) -> None:
    waves = noise(700, SAMPLES) * torch.linspace(0.1, 1, 700)[:, None]
    classifier = SoundClassifier(frontend, SAMPLES, 4, width=16, depth=1)
    classifier.fit_normalisation(waves)
    tokens = classifier.token_image(waves).transpose(0, 1).flatten(1)
    torch.testing.assert_close(tokens.mean(1), torch.zeros(len(tokens)), atol=1e-4, rtol=0)
    torch.testing.assert_close(tokens.std(1, correction=0), torch.ones(len(tokens)), atol=1e-4, rtol=0)


@pytest.mark.parametrize("frontend", make_frontends(), ids=lambda frontend: type(frontend).__name__)
def test_all_parameters_receive_gradients_and_rows_are_independent(frontend: nn.Module) -> None:
    torch.manual_seed(0)
    classifier = SoundClassifier(frontend, SAMPLES, 4, width=16, depth=2)
    waves = noise(5, SAMPLES)
    logits = classifier(waves)
    assert logits.shape == (5, 4)
    torch.testing.assert_close(classifier(waves[2:3]), logits[2:3], atol=1e-5, rtol=1e-5)
    classifier.loss(waves, torch.tensor([0, 1, 2, 3, 0])).backward()
    assert all(weight.grad is not None and bool(weight.grad.any()) for weight in classifier.parameters())


def test_state_dict_includes_the_normalisation() -> None:
    first, second = (SoundClassifier(WavePatches(128), SAMPLES, 2, width=16, depth=1) for _ in range(2))
    first.fit_normalisation(noise(9, SAMPLES))
    second.load_state_dict(first.state_dict())
    torch.testing.assert_close(second(noise(2, SAMPLES)), first(noise(2, SAMPLES)))


def test_waves_are_cropped_to_their_loudest_segment() -> None:
    long, short = torch.zeros(100), torch.tensor([0.1, -0.2])
    long[60:64] = torch.tensor([0.1, 0.5, -0.25, 0.1])
    rows = crop_and_normalise([long, short, torch.zeros(3), torch.zeros(0)], 4)
    torch.testing.assert_close(rows[0], torch.tensor([0.2, 1.0, -0.5, 0.2]))
    torch.testing.assert_close(rows[1], torch.tensor([0.5, -1.0, 0.0, 0.0]))
    assert not rows[2:].any()
    assert float(crop_and_normalise([noise(500)], 77).abs().max()) == 1


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="classes must be at least 2; got classes=1"):
        SoundClassifier(WavePatches(128), SAMPLES, 1)
    with pytest.raises(ValueError, match="as long as a patch; got 100 samples, size=128"):
        WavePatches(128)(noise(1, 100))
    with pytest.raises(ValueError, match="size must be at least 1; got size=0"):
        WavePatches(0)
    with pytest.raises(ValueError, match="count must be from 1 to the number of bands"):
        MFCC(LogMelSpectrogram(20, window=256, rate=RATE), 21)
    with pytest.raises(ValueError, match="samples must be at least 1; got samples=0"):
        crop_and_normalise([noise(5)], 0)


def write_wav(path: Path, samples: Iterable[float], rate: int = RATE) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(b"".join(round(32_767 * sample).to_bytes(2, "little", signed=True) for sample in samples))


def classify(trained: TrainedRun, *paths: Path) -> list[ResultRow]:
    return list(sound_classifier.Predict()(trained, [Input(path) for path in paths]))


def test_trained_run_classifies_wav_files(
    trained_run: "Callable[..., TrainedRun]", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = trained_run(NAME)
    write_wav(tmp_path / "a.wav", noise(3_000).tolist())
    write_wav(tmp_path / "b.wav", noise(2_000).tolist())
    rows = classify(trained, tmp_path / "a.wav", tmp_path / "b.wav")
    assert [Path(str(row["sound"])).name for row in rows] == 3 * ["a.wav"] + 3 * ["b.wav"]
    classifiers = cast("sound_classifier.SoundClassifiers", trained.model)
    samples, _ = read_wav(tmp_path / "a.wav")
    for row, (_, classifier) in zip(rows[:3], classifiers.named_models(), strict=True):
        with torch.no_grad():
            probabilities = classifier(crop_and_normalise([samples[0]], classifier.samples)).softmax(1)[0]
        assert row["class"] == classifiers.classes[int(probabilities.argmax())]
        assert row["probability"] == pytest.approx(float(probabilities.max()))
    stream = SimpleNamespace(buffer=io.BytesIO((tmp_path / "a.wav").read_bytes()))
    monkeypatch.setattr("sys.stdin", stream)
    from_stdin = list(sound_classifier.Predict()(trained, [Input()]))
    assert [row["probability"] for row in from_stdin] == [row["probability"] for row in rows[:3]]


def test_evaluation_reproduces_the_accuracies_of_the_run(trained_run: "Callable[..., TrainedRun]") -> None:
    trained = trained_run(NAME)
    (row,) = sound_classifier.Evaluate()([trained])
    result = cast("dict[str, float]", trained.folder.read_json("result.json")["result"])
    assert (row["run"], row["data"]) == (trained.folder.path.name, "vowels")
    for name in sound_classifier.INPUTS:
        assert row[f"{name}_accuracy"] == pytest.approx(result[f"accuracy/{name}"])


def test_accuracy_on_a_folder_with_some_of_the_classes(
    trained_run: "Callable[..., TrainedRun]", tmp_path: Path
) -> None:
    trained = trained_run(NAME)
    classes = cast("sound_classifier.SoundClassifiers", trained.model).classes
    paths = [tmp_path / name / f"{number}.wav" for name in sorted(classes[-2:]) for number in range(4)]
    for path, samples in zip(paths, noise(len(paths), 2_000), strict=True):
        write_wav(path, samples.tolist())
    rows = classify(trained, *paths)
    (row,) = sound_classifier.Evaluate(str(tmp_path), split="all")([trained])
    assert row["sounds"] == len(paths)
    for name, tokens in sound_classifier.INPUTS.items():
        found = [Path(str(each["sound"])).parent.name == each["class"] for each in rows if each["tokens"] == tokens]
        assert row[f"{name}_accuracy"] == pytest.approx(sum(found) / len(paths))
    write_wav(tmp_path / "bell" / "0.wav", [0.5] * 100)
    with pytest.raises(DataError, match=r"must have classes among .*; got classes bell, "):
        sound_classifier.Evaluate(str(tmp_path))([trained])


def test_sounds_of_another_rate_are_resampled(trained_run: "Callable[..., TrainedRun]", tmp_path: Path) -> None:
    trained = trained_run(NAME)
    slow, fast = (torch.arange(rate // 2) / rate for rate in (RATE, 44_100))
    tones = {}
    for name, times, rate in (("slow", slow, RATE), ("fast", fast, 44_100)):
        write_wav(tmp_path / f"{name}.wav", (0.5 * (2 * torch.pi * 300 * times).sin()).tolist(), rate=rate)
        tones[name] = [row["probability"] for row in classify(trained, tmp_path / f"{name}.wav")]
    assert tones["fast"][:2] == pytest.approx(tones["slow"][:2], rel=0.05)  # the third depends on the phase


def test_invalid_wav_files_raise_data_error(trained_run: "Callable[..., TrainedRun]", tmp_path: Path) -> None:
    trained = trained_run(NAME)
    write_wav(tmp_path / "silent.wav", [0.0] * 10)
    (tmp_path / "text.wav").write_text("not a sound")
    with pytest.raises(DataError, match=r"silent\.wav is silent"):
        classify(trained, tmp_path / "silent.wav")
    with pytest.raises(DataError, match=r"text\.wav is not a PCM WAV file"):
        classify(trained, tmp_path / "text.wav")


def test_training_on_a_folder_of_wav_files(trained_run: "Callable[..., TrainedRun]", tmp_path: Path) -> None:
    for name, pitch in (("low", 300), ("high", 900)):
        for number in range(8):
            time = torch.arange(3_000 + 10 * number) / RATE
            tone = 0.5 * (2 * torch.pi * (pitch + 5 * number) * time).sin()
            write_wav(tmp_path / "tones" / name / f"{number}.wav", tone.tolist())
    trained = trained_run(NAME, data=str(tmp_path / "tones"), steps=60, batch_size=8)
    result = trained.folder.read_json("result.json")["result"]
    assert isinstance(result, dict)
    assert result["accuracy/log_mel"] == 1.0
    rows = classify(trained, tmp_path / "tones" / "high" / "0.wav")
    assert [row["class"] for row in rows].count("high") >= 2


def test_folder_without_test_sounds_raises_data_error(trained_run: "Callable[..., TrainedRun]", tmp_path: Path) -> None:
    for name in ("low", "high"):
        write_wav(tmp_path / "tones" / name / "0.wav", [0.5] * 3_000)
    with pytest.raises(DataError, match="needs more sounds: none of its 2 are left for testing"):
        trained_run(NAME, data=str(tmp_path / "tones"))
