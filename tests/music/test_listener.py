"""Listeners: what tokens they hear, how waves are fitted, and a sound of one's own named by a trained run."""

import importlib
import wave as wav
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from parnassus.cli.sample import Draw, Writer, draw_samples
from parnassus.data import DataError
from parnassus.music import Cepstra, Listener, LogMel, WavePieces, cepstra, fitted, levels, to_tokens
from parnassus.train.trained import Trained

RATE, SAMPLES = 8_000, 1_600
NAME = "sounds_as_waves_and_spectra"


def noise(*shape: int) -> Tensor:
    return 2 * torch.rand(*shape, generator=torch.Generator().manual_seed(0)) - 1


def ways() -> list[nn.Module]:
    spectrum = LogMel(20, window=256, rate=RATE)
    return [spectrum, Cepstra(spectrum, 13), WavePieces(128)]


def test_tokens_are_bands_cepstra_and_pieces() -> None:
    waves = noise(3, SAMPLES)
    spectrum, coefficients, pieces = (hear(waves) for hear in ways())
    assert spectrum.shape == (3, 20, 13)
    torch.testing.assert_close(coefficients, cepstra(spectrum, 13))
    assert pieces.shape == (3, 128, 12)
    torch.testing.assert_close(pieces[1, :, 2], levels(to_tokens(waves[1, 256:384])))


@pytest.mark.parametrize("hear", ways(), ids=lambda hear: type(hear).__name__)
def test_numbers_are_scaled_by_what_is_usual(hear: nn.Module) -> None:
    waves = noise(700, SAMPLES) * torch.linspace(0.1, 1, 700)[:, None]
    listener = Listener(hear, SAMPLES, 4, width=16, depth=1)
    listener.adapt(waves)
    heard = listener.picture(waves).transpose(0, 1).flatten(1)
    torch.testing.assert_close(heard.mean(1), torch.zeros(len(heard)), atol=1e-4, rtol=0)
    torch.testing.assert_close(heard.std(1, correction=0), torch.ones(len(heard)), atol=1e-4, rtol=0)


@pytest.mark.parametrize("hear", ways(), ids=lambda hear: type(hear).__name__)
def test_every_weight_learns_and_rows_are_apart(hear: nn.Module) -> None:
    torch.manual_seed(0)
    listener = Listener(hear, SAMPLES, 4, width=16, depth=2)
    waves = noise(5, SAMPLES)
    logits = listener(waves)
    assert logits.shape == (5, 4)
    torch.testing.assert_close(listener(waves[2:3]), logits[2:3], atol=1e-5, rtol=1e-5)
    listener.loss(waves, torch.tensor([0, 1, 2, 3, 0])).backward()
    assert all(weight.grad is not None and bool(weight.grad.any()) for weight in listener.parameters())


def test_scales_are_saved_with_the_weights() -> None:
    first, second = (Listener(WavePieces(128), SAMPLES, 2, width=16, depth=1) for _ in range(2))
    first.adapt(noise(9, SAMPLES))
    second.load_state_dict(first.state_dict())
    torch.testing.assert_close(second(noise(2, SAMPLES)), first(noise(2, SAMPLES)))


def test_waves_are_fitted_to_their_loudest_stretch() -> None:
    long, short = torch.zeros(100), torch.tensor([0.1, -0.2])
    long[60:64] = torch.tensor([0.1, 0.5, -0.25, 0.1])
    rows = fitted([long, short, torch.zeros(3), torch.zeros(0)], 4)
    torch.testing.assert_close(rows[0], torch.tensor([0.2, 1.0, -0.5, 0.2]))
    torch.testing.assert_close(rows[1], torch.tensor([0.5, -1.0, 0.0, 0.0]))
    assert not rows[2:].any()
    assert float(fitted([noise(500)], 77).abs().max()) == 1


def test_what_cannot_be_heard_is_refused() -> None:
    with pytest.raises(ValueError, match="two classes to tell apart; got classes=1"):
        Listener(WavePieces(128), SAMPLES, 1)
    with pytest.raises(ValueError, match="as long as a piece; got 100 samples, size=128"):
        WavePieces(128)(noise(1, 100))
    with pytest.raises(ValueError, match="at least one sample; got size=0"):
        WavePieces(0)
    with pytest.raises(ValueError, match="as many cepstra as bands"):
        Cepstra(LogMel(20, window=256, rate=RATE), 21)
    with pytest.raises(ValueError, match="at least one sample; got samples=0"):
        fitted([noise(5)], 0)


def write_wav(path: Path, samples: Iterable[float], rate: int = RATE) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with wav.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(b"".join(round(32_767 * one).to_bytes(2, "little", signed=True) for one in samples))


def named(trained: Trained, out: Path, **how: object) -> str:
    sample = importlib.import_module(f"parnassus.music.experiments.{NAME}").Sample(**how)
    assert isinstance(sample, Writer)
    return Path(f"{draw_samples(trained, sample, Draw(0, 'cpu', out))}.txt").read_text(encoding="utf-8")


def test_a_trained_run_names_a_sound_of_yours(
    trained_run: "Callable[..., Trained]", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = trained_run(NAME)
    write_wav(tmp_path / "a.wav", noise(3_000).tolist())
    text = named(trained, tmp_path / "one", wav=str(tmp_path / "a.wav"))
    assert text.count("%") == 3
    assert text.startswith(f"{tmp_path / 'a.wav'}: h")
    monkeypatch.setattr("sys.stdin", [f"{tmp_path / 'none.wav'}\n", f"{tmp_path / 'a.wav'}\n"])
    missing, again = named(trained, tmp_path / "many").splitlines()
    assert "none.wav cannot be read" in missing
    assert f"{again}\n" == text


def test_files_it_cannot_name_get_a_sentence(trained_run: "Callable[..., Trained]", tmp_path: Path) -> None:
    trained = trained_run(NAME)
    write_wav(tmp_path / "fast.wav", [0.5] * 10, rate=44_100)
    write_wav(tmp_path / "silent.wav", [0.0] * 10)
    with pytest.raises(DataError, match=r"fast\.wav has 44100 samples a second; this model has learned sounds of 8000"):
        named(trained, tmp_path / "out", wav=str(tmp_path / "fast.wav"))
    with pytest.raises(DataError, match=r"silent\.wav is silent"):
        named(trained, tmp_path / "out", wav=str(tmp_path / "silent.wav"))


def test_a_folder_of_yours_is_learned(trained_run: "Callable[..., Trained]", tmp_path: Path) -> None:
    for name, pitch in (("low", 300), ("high", 900)):
        for number in range(8):
            time = torch.arange(3_000 + 10 * number) / RATE
            tone = 0.5 * (2 * torch.pi * (pitch + 5 * number) * time).sin()
            write_wav(tmp_path / "tones" / name / f"{number}.wav", tone.tolist())
    trained = trained_run(NAME, data=str(tmp_path / "tones"), steps=60, batch=8)
    result = trained.folder.read_json("result.json")["result"]
    assert isinstance(result, dict)
    assert result["accuracy/log_mel"] == 1.0
    assert named(trained, tmp_path / "out", wav=str(tmp_path / "tones" / "high" / "0.wav")).count("high") >= 2


def test_a_folder_too_small_to_test_with_gets_a_sentence(trained_run: "Callable[..., Trained]", tmp_path: Path) -> None:
    for name in ("low", "high"):
        write_wav(tmp_path / "tones" / name / "0.wav", [0.5] * 3_000)
    with pytest.raises(DataError, match="none of its 2 is left to test with"):
        trained_run(NAME, data=str(tmp_path / "tones"))
