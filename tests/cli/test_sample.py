"""`parnassus sample`: images, animations, every sampler, text, and an error message for what does not apply."""

import io
import json
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from markupsafe import escape
from PIL import Image
from torch import Tensor, nn

from parnassus.cli.main import dispatch, main
from parnassus.cli.sample import SampleOptions, draw_samples
from parnassus.runs import RunFolder
from parnassus.train.trained import Trained

RUN = "digits"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the diffusion model that has hardly begun to learn: enough to draw from."""
    root = tmp_path_factory.mktemp("generative")
    flags = ["--profile", "smoke", "--device", "cpu", "--quiet", "--folder", str(root), "--name"]
    assert dispatch(["run", "diffusion_on_digits", *flags, RUN]) == 0
    assert dispatch(["run", "vae", *flags, "vae"]) == 0
    return root / RUN


def sampled(run: Path, out: Path, *flags: str) -> np.ndarray:
    assert dispatch(["sample", str(run), "--out", str(out), "--device", "cpu", *flags]) == 0
    return np.asarray(np.load(f"{out}.npy"))


def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What `parnassus sample …` says when it says one sentence and gives code 2."""
    capsys.readouterr()
    monkeypatch.setattr(sys, "argv", ["parnassus", "sample", *arguments, "--device", "cpu"])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("parnassus: ")
    return line.removeprefix("parnassus: ")


@pytest.mark.parametrize("sampler", ["ddim", "ddpm", "heun", "dpm"])
def test_every_sampler_draws_the_class_asked_for(trained: Path, tmp_path: Path, sampler: str) -> None:
    flags = (
        "--label",
        "7",
        "--guidance-scale",
        "3",
        "--steps",
        "5",
        "--seed",
        "7",
        "--num-samples",
        "6",
        "--sampler",
        sampler,
    )
    first, again = (sampled(trained, tmp_path / name, *flags) for name in ("first", "again"))
    assert first.shape == (6, 1, 8, 8)
    assert np.array_equal(first, again)
    assert first.min() >= 0
    assert first.max() <= 1
    assert not np.array_equal(first, sampled(trained, tmp_path / "other", *flags, "--seed", "8"))
    with Image.open(tmp_path / "first.png") as picture:
        assert picture.width > 100


def test_a_film_ends_in_the_samples_and_has_every_step(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ("--steps", "6", "--num-samples", "4")
    still, moving = (
        sampled(trained, tmp_path / "still", *flags),
        sampled(trained, tmp_path / "moving", *flags, "--animation"),
    )
    assert np.array_equal(still, moving)
    assert not (tmp_path / "still.gif").exists()
    assert f"animation: {tmp_path / 'moving'}.gif" in capsys.readouterr().out
    with Image.open(tmp_path / "moving.gif") as film:
        assert getattr(film, "n_frames", 1) == 7  # the noise and six steps
        film.seek(6)
        shown = np.asarray(film.convert("L"), dtype=float) / 255
    side = shown.shape[0] // 17  # two images of eight pixels and a gap between them
    first = shown[side // 2 : 8 * side : side, side // 2 : 8 * side : side]
    assert np.abs(first - moving[0, 0]).max() < 0.02


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--guidance-scale", "-1"), "--guidance-scale must be at least 0; got -1.0"),
        (("--guidance-scale", "nan"), "--guidance-scale must be at least 0; got nan"),
        (("--guidance-scale", "inf"), "guidance_scale must be finite and ≥ 0; got guidance_scale=inf"),
        (("--steps", "0"), "--steps must be at least 1; got 0"),
        (("--steps", "21"), "steps must lie between 1 and the 20 steps of the chain; got steps=21"),
        (("--label", "10"), "label must lie between 0 and 9; got label=10"),
        (("--label", "-1"), "--label must be at least 0; got -1"),
        (("--num-samples", "0"), "--num-samples must be at least 1; got 0"),
        (("--seed", "-1"), "--seed must be between 0 and 2⁶³ − 1; got -1"),
        (("--seed", "99999999999999999999"), "--seed must be between 0 and 2⁶³ − 1; got"),
    ],
)
def test_what_cannot_be_drawn_is_said_in_a_sentence(
    trained: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    flags: tuple[str, ...],
    sentence: str,
) -> None:
    assert refused(monkeypatch, capsys, str(trained), *flags).startswith(sentence)
    assert not (trained / "samples").exists()


@pytest.mark.parametrize(
    "flags", [("--sampler", "euler"), ("--steps", "many"), ("--guidance-scale", "much"), ("--nope",)]
)
def test_wrong_flags_get_code_2(trained: Path, capsys: pytest.CaptureFixture[str], flags: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as stopped:
        dispatch(["sample", str(trained), *flags])
    assert stopped.value.code == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_model_that_draws_at_once_has_no_film_and_pictures_are_not_compiled(
    trained: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refused(monkeypatch, capsys, str(trained.parent / "vae"), "--animation").startswith(
        "--animation does not apply"
    )
    assert refused(monkeypatch, capsys, str(trained), "--compile").startswith("--compile does not apply")


def test_a_changed_byte_of_the_weights_is_told_wherever_it_is(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "damaged"
    run.mkdir()
    for name in ("run.json", "model.json"):
        (run / name).write_bytes((trained / name).read_bytes())
    good = (trained / "weights.safetensors").read_bytes()
    header = 8 + int.from_bytes(good[:8], "little")
    draw = random.Random(0)
    places = [0, 7, 8, *draw.sample(range(9, header), 6), *draw.sample(range(header, len(good)), 3)]
    for place in places:
        changed = bytearray(good)
        changed[place] ^= 1 << draw.randrange(8)
        (run / "weights.safetensors").write_bytes(bytes(changed))
        message = refused(monkeypatch, capsys, str(run))
        assert "weights.safetensors" in message, (place, message)
    for length in (0, header, len(good) - 1):
        (run / "weights.safetensors").write_bytes(good[:length])
        assert "weights.safetensors is damaged" in refused(monkeypatch, capsys, str(run))


@pytest.fixture(scope="module")
def writing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a language model that has hardly begun to learn: enough to write."""
    root = tmp_path_factory.mktemp("writing")
    text = root / "own.txt"
    text.write_text("the cat sat on the mat.\n" * 40, encoding="utf-8")
    flags = ["--profile", "smoke", "--device", "cpu", "--quiet", "--folder", str(root), "--name", "gpt"]
    assert dispatch(["run", "gpt", "--text", str(text), *flags]) == 0
    return root / "gpt"


def wrote(run: Path, out: Path, capsys: pytest.CaptureFixture[str], *flags: str) -> str:
    """What is streamed to standard output, once it is sure that the file says the same."""
    capsys.readouterr()
    assert dispatch(["sample", str(run), "--out", str(out), "--device", "cpu", *flags]) == 0
    streamed = capsys.readouterr()
    assert streamed.err == f"text: {out}.txt\n"
    assert Path(f"{out}.txt").read_text(encoding="utf-8") == streamed.out
    return str(streamed.out)


def test_text_is_streamed_and_kept(writing: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ("--prompt", "the cat", "--max-new-tokens", "50", "--temperature", "0.9", "--top-k", "9", "--top-p", "0.95")
    first, again = (wrote(writing, tmp_path / name, capsys, *flags, "--seed", "1") for name in ("first", "again"))
    assert first.startswith("the cat")
    assert len(first.removesuffix("\n")) in (len("the cat") + 49, len("the cat") + 50)  # the last may be a new line
    assert first == again
    assert first != wrote(writing, tmp_path / "other", capsys, *flags, "--seed", "2")
    assert not list(tmp_path.glob("*.npy"))


@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler here: apt-get install g++")
def test_compiled_it_writes_the_same(writing: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ("--prompt", "the cat", "--max-new-tokens", "40", "--temperature", "0.01")  # beyond the window of 32
    plain = wrote(writing, tmp_path / "plain", capsys, *flags)
    words = ["-m", "parnassus", "sample", str(writing), "--out", str(tmp_path / "compiled"), "--device", "cpu"]
    compiled = subprocess.run(  # the checks of types that tests have are nothing for a compiler
        [sys.executable, *words, *flags, "--compile"], capture_output=True, text=True, check=True, timeout=300
    )
    assert compiled.stdout == plain


def test_what_was_written_before_an_interruption_is_kept(
    writing: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Impatient:
        """Has read enough after three pieces."""

        def write(self, _: nn.Module) -> Iterator[str]:
            yield from ("a", "b", "c")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        draw_samples(
            Trained.open(RunFolder(writing)), Impatient(), SampleOptions(device="cpu", out=tmp_path / "part.txt")
        )
    assert capsys.readouterr().out == "abc\n"
    assert (tmp_path / "part.txt").read_text(encoding="utf-8") == "abc\n"


def test_a_prompt_may_come_from_standard_input(
    writing: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("the mat\n"))
    piped = wrote(writing, tmp_path / "piped", capsys, "--prompt", "-", "--max-new-tokens", "9")
    assert piped == wrote(writing, tmp_path / "given", capsys, "--prompt", "the mat", "--max-new-tokens", "9")


def test_a_prompt_beyond_the_window_is_read_from_its_end(
    writing: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prompt = "the cat sat on the mat.\n" * 9
    ends = [
        wrote(writing, tmp_path / "long", capsys, "--prompt", text, "--max-new-tokens", "8")
        for text in (prompt, prompt[-32:])
    ]
    assert ends[0].removeprefix(prompt) == ends[1].removeprefix(prompt[-32:])


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (
            ("--prompt", "Zürich"),
            "text must consist of the 12 characters of the alphabet; got 'Z' (U+005A), 'ü' (U+00FC), 'r'",
        ),
        (("--max-new-tokens", "0"), "--max-new-tokens must be at least 1; got 0"),
        (("--temperature", "-1"), "--temperature must be at least 0; got -1.0"),
        (("--top-k", "0"), "--top-k must be at least 1; got 0"),
        (("--top-p", "1.5"), "--top-p must be between 0 and 1; got 1.5"),
        (("--animation",), "--animation does not apply: this model generates text"),
        (("--compile",), "torch.compile failed: no compiler; omit --compile"),
    ],
)
def test_what_cannot_be_written_is_said_in_a_sentence(
    writing: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    flags: tuple[str, ...],
    sentence: str,
) -> None:
    def broken(*_: object) -> Tensor:
        raise RuntimeError("no compiler")

    monkeypatch.setattr(torch, "compile", lambda _: broken)
    assert refused(monkeypatch, capsys, str(writing), *flags).startswith(sentence)
    assert not (writing / "samples").exists()


def test_twenty_lines_of_plain_torch_read_what_is_exported(
    writing: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "exported"
    assert dispatch(["sample", str(writing), "--export", str(folder)]) == 0
    assert f"exported: {folder}" in capsys.readouterr().out
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "weights.safetensors"]
    code = (Path(__file__).parents[2] / "docs" / "plain_gpt.py").read_text(encoding="utf-8")
    reader = code.partition("\ndef ")[2].partition("# That was all")[0]
    assert len([line for line in reader.splitlines() if line.strip()]) <= 20
    assert "import parnassus" not in code
    assert "from parnassus" not in code
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder), "the cat", "25"], capture_output=True, text=True, check=True
    )
    greedy = wrote(
        writing, tmp_path / "ours", capsys, "--prompt", "the cat", "--max-new-tokens", "25", "--temperature", "0"
    )
    assert done.stdout.strip() == greedy.strip()


def test_the_report_shows_what_it_wrote_line_by_line(writing: Path) -> None:
    report = (writing / "report.html").read_text(encoding="utf-8")
    told = json.loads((writing / "story.json").read_text(encoding="utf-8"))
    texts = [item["text"] for item in told.values() if item["kind"] == "text"]
    assert len(texts) == 2
    assert all(f"<pre>{escape(text)}</pre>" in report for text in texts)
