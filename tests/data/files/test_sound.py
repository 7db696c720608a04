import io
import tarfile
import wave
from pathlib import Path

import numpy as np
import pytest
import torch

from parnassus.data import DataError, read_wav, spoken_digits, wav_folder
from parnassus.notices import pass_notices


def encode_wav(samples: list[int], *, width: int = 2, channels: int = 1, rate: int = 8_000) -> bytes:
    """A WAV file of signed samples; samples of 8 bits are stored with an offset."""
    shift = 128 if width == 1 else 0
    frames = b"".join((sample + shift).to_bytes(width, "little", signed=width > 1) for sample in samples)
    content = io.BytesIO()
    with wave.open(content, "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(frames)
    return content.getvalue()


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_every_sample_width_is_scaled_to_one(tmp_path: Path, width: int) -> None:
    full_scale = 2 ** (8 * width - 1)
    (tmp_path / "a.wav").write_bytes(
        encode_wav([-full_scale, -full_scale // 2, 0, 1, full_scale // 4, full_scale - 1], width=width)
    )
    sound, rate = read_wav(tmp_path / "a.wav")
    assert rate == 8_000
    torch.testing.assert_close(
        sound, torch.tensor([[-1, -0.5, 0, 1 / full_scale, 0.25, (full_scale - 1) / full_scale]])
    )


def test_channels_are_separated(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(encode_wav([1, -1, 2, -2, 3, -3], channels=2, rate=44_100))
    sound, rate = read_wav(tmp_path / "a.wav")
    assert rate == 44_100
    assert (sound * 2**15).tolist() == [[1, 2, 3], [-1, -2, -3]]


@pytest.mark.parametrize("keep", [0, 11, 30, 60])
def test_truncated_wav_file_raises_data_error(tmp_path: Path, keep: int) -> None:
    (tmp_path / "a.wav").write_bytes(encode_wav([1] * 100)[:keep])
    with pytest.raises(DataError, match=r"a\.wav is (not a PCM WAV file|truncated)"):
        read_wav(tmp_path / "a.wav")


def test_folders_are_classes(tmp_path: Path) -> None:
    for label, name in enumerate(("bark", "meow")):
        (tmp_path / "pets" / name).mkdir(parents=True)
        for number in range(5):
            (tmp_path / "pets" / name / f"{number}.wav").write_bytes(encode_wav([1 + label] * (10 + number)))
    data = wav_folder(tmp_path / "pets")
    assert (data.name, data.classes, len(data.train), len(data.test)) == ("pets", ("bark", "meow"), 8, 2)
    for recordings in (data.train, data.test):
        assert [int(each[0] * 2**15) - 1 for each in recordings.waves] == recordings.labels.tolist()


def sine(rate: int, *, hertz: float = 440.0, seconds: float = 0.25, channels: int = 1) -> bytes:
    wave = np.sin(2 * np.pi * hertz * np.arange(round(seconds * rate)) / rate)
    return encode_wav((0.5 * 2**15 * wave).astype(int).repeat(channels).tolist(), channels=channels, rate=rate)


def test_recordings_get_the_most_frequent_rate_and_one_channel(tmp_path: Path) -> None:
    (tmp_path / "tones" / "low").mkdir(parents=True)
    for number, (rate, channels) in enumerate([(16_000, 1), (16_000, 2), (44_100, 2), (8_000, 1)]):
        (tmp_path / "tones" / "low" / f"{number}.wav").write_bytes(sine(rate, channels=channels))
    lines: list[str] = []
    with pass_notices(lines.append):
        data = wav_folder(tmp_path / "tones", test=0.0)
    assert lines == [
        "tones: 2 of 4 recordings are resampled to 16,000 samples per second",
        "tones: the channels of 2 of 4 recordings are averaged",
    ]
    expected = 0.5 * torch.sin(2 * torch.pi * 440 * torch.arange(4_000) / 16_000)
    assert data.train.rate == 16_000
    for tone in data.train.waves:
        assert len(tone) == 4_000
        torch.testing.assert_close(tone[200:-200], expected[200:-200], atol=5e-3, rtol=0)


def test_floating_point_and_extensible_formats(tmp_path: Path) -> None:
    from scipy.io import wavfile

    wave = np.array([[0.5, -0.25], [1.0, 0.0]], dtype=np.float32)
    for dtype in (np.float32, np.float64):
        wavfile.write(tmp_path / "a.wav", 44_100, wave.astype(dtype))
        sound, rate = read_wav(tmp_path / "a.wav")
        assert rate == 44_100
        assert sound.tolist() == wave.T.tolist()
    plain = encode_wav([1, -1, 2], rate=8_000)
    form = plain[20:36]  # tag, channels, rate, …
    guid = b"\x01\x00\x00\x00\x00\x00\x10\x00\x80\x00\x00\xaa\x00\x38\x9b\x71"
    extended = b"\xfe\xff" + form[2:] + b"\x16\x00\x10\x00\x00\x00\x00\x00" + guid
    content = plain[:16] + len(extended).to_bytes(4, "little") + extended + plain[36:]
    (tmp_path / "b.wav").write_bytes(content)
    assert (read_wav(tmp_path / "b.wav")[0] * 2**15).tolist() == [[1, -1, 2]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"ID3" + bytes(100), "does not begin with RIFF and WAVE"),
        (encode_wav([]), "is empty"),
        (encode_wav([1, 2])[:20] + b"\x02\x00" + encode_wav([1, 2])[22:], "has format 2 with 16 bits"),
        (encode_wav([1, 2])[:24] + bytes(4) + encode_wav([1, 2])[28:], "0 samples per second"),
    ],
)
def test_other_files_raise_data_error(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "a.wav").write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_wav(tmp_path / "a.wav")


def test_folder_without_sound_raises_data_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there are none"):
        wav_folder(tmp_path)


def write_archive(path: Path, names: list[str], content: bytes) -> None:
    path.parent.mkdir(parents=True)
    with tarfile.open(path, "w:gz") as tar:
        for name in names:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


@pytest.mark.parametrize("prefix", ["recordings/", "free-spoken-digit-dataset-1.0.10/recordings/"])
def test_first_five_spoken_digits_form_the_test_split(data_dir: Path, prefix: str) -> None:
    names = [
        f"{prefix}{digit}_{speaker}_{number}.wav"
        for digit in range(10)
        for speaker in ("ann", "bob")
        for number in range(7)
    ]
    write_archive(data_dir / "fsdd" / "recordings.tar.gz", [*names, "README.md"], encode_wav([5] * 20))
    data = spoken_digits()
    assert (len(data.train), len(data.test), data.train.rate) == (40, 100, 8_000)
    assert torch.bincount(data.test.labels).tolist() == [10] * 10
    assert set(data.train.speakers) == {"ann", "bob"}
    assert np.isclose(float(data.train.waves[0][0]), 5 / 2**15)


def test_archive_with_other_content_raises_data_error(data_dir: Path) -> None:
    write_archive(data_dir / "fsdd" / "recordings.tar.gz", ["recordings/1_ann_0.wav"], encode_wav([5] * 20))
    with pytest.raises(
        DataError, match="must have recordings of all ten digits at one sampling rate; it has 1 recordings"
    ):
        spoken_digits()


def test_real_spoken_digits(real_data: Path) -> None:
    if not (real_data / "fsdd").is_dir():
        pytest.skip("the spoken digits are not in the data directory")
    data = spoken_digits()
    assert (len(data.train), len(data.test), data.train.rate) == (2_700, 300, 8_000)
    assert torch.bincount(data.test.labels).tolist() == [30] * 10
    assert len(set(data.train.speakers)) == 6
    assert all(0 < float(each.abs().max()) <= 1 for each in data.test.waves)
