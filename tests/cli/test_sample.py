"""`parnassus sample`: images, animations, samplers, text, and error messages."""

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
from parnassus.cli.sample import CompileOptions, SampleOptions, draw_samples, options_for
from parnassus.runs import RunFolder
from parnassus.train.trained import TrainedRun

RUN = "digits"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the diffusion model with the smoke profile."""
    root = tmp_path_factory.mktemp("generative")
    flags = ["--profile", "smoke", "--device", "cpu", "--quiet", "--folder", str(root), "--name"]
    assert dispatch(["run", "diffusion_on_digits", *flags, RUN]) == 0
    assert dispatch(["run", "vae", *flags, "vae"]) == 0
    return root / RUN


def draw_array(run: Path, out: Path, *flags: str) -> np.ndarray:
    assert dispatch(["sample", str(run), "--out", str(out), "--device", "cpu", *flags]) == 0
    return np.asarray(np.load(f"{out}.npy"))


def error_message(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run `parnassus sample …`, which exits with code 2, and return its one-line message."""
    capsys.readouterr()
    monkeypatch.setattr(sys, "argv", ["parnassus", "sample", *arguments, "--device", "cpu"])
    with pytest.raises(SystemExit) as exit_info:
        main()
    assert exit_info.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("parnassus: ")
    return line.removeprefix("parnassus: ")


@pytest.mark.parametrize("sampler", ["ddim", "ddpm", "heun", "dpm"])
def test_every_sampler_is_reproducible_for_a_label(trained: Path, tmp_path: Path, sampler: str) -> None:
    flags = (
        "--label",
        "7",
        "--guidance-scale",
        "3",
        "--num-inference-steps",
        "5",
        "--seed",
        "7",
        "--num-samples",
        "6",
        "--sampler",
        sampler,
    )
    first, repeated = (draw_array(trained, tmp_path / name, *flags) for name in ("first", "again"))
    assert first.shape == (6, 1, 8, 8)
    assert np.array_equal(first, repeated)
    assert first.min() >= 0
    assert first.max() <= 1
    assert not np.array_equal(first, draw_array(trained, tmp_path / "other", *flags, "--seed", "8"))
    with Image.open(tmp_path / "first.png") as picture:
        assert picture.width > 100


def test_animation_has_every_step_and_ends_in_the_samples(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ("--num-inference-steps", "6", "--num-samples", "4")
    without_animation, with_animation = (
        draw_array(trained, tmp_path / "still", *flags),
        draw_array(trained, tmp_path / "moving", *flags, "--animation"),
    )
    assert np.array_equal(without_animation, with_animation)
    assert not (tmp_path / "still.gif").exists()
    assert f"animation: {tmp_path / 'moving'}.gif" in capsys.readouterr().out
    with Image.open(tmp_path / "moving.gif") as animation:
        assert getattr(animation, "n_frames", 1) == 7  # the noise and six steps
        animation.seek(6)
        last_frame = np.asarray(animation.convert("L"), dtype=float) / 255
    side = last_frame.shape[0] // 17  # two images of eight pixels and a gap between them
    first = last_frame[side // 2 : 8 * side : side, side // 2 : 8 * side : side]
    assert np.abs(first - with_animation[0, 0]).max() < 0.02


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--guidance-scale", "-1"), "--guidance-scale must be at least 0; got -1.0"),
        (("--guidance-scale", "nan"), "--guidance-scale must be at least 0; got nan"),
        (("--guidance-scale", "inf"), "guidance_scale must be finite and ≥ 0; got guidance_scale=inf"),
        (("--num-inference-steps", "0"), "--num-inference-steps must be at least 1; got 0"),
        (
            ("--num-inference-steps", "21"),
            "num_inference_steps must be between 1 and 20, the length of the chain; got 21",
        ),
        (("--label", "10"), "label must lie between 0 and 9; got label=10"),
        (("--label", "-1"), "--label must be at least 0; got -1"),
        (("--num-samples", "0"), "--num-samples must be at least 1; got 0"),
        (("--seed", "-1"), "--seed must be at least 0; got -1"),
        (("--seed", "99999999999999999999"), "--seed must be between −2⁶³ and 2⁶³ − 1; got"),
    ],
)
def test_invalid_image_flags_exit_with_one_line(
    trained: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    flags: tuple[str, ...],
    message: str,
) -> None:
    assert error_message(monkeypatch, capsys, str(trained), *flags).startswith(message)
    assert not (trained / "samples").exists()


@pytest.mark.parametrize(
    "flags", [("--sampler", "euler"), ("--num-inference-steps", "many"), ("--guidance-scale", "much"), ("--nope",)]
)
def test_unparsable_flags_exit_with_code_2(
    trained: Path, capsys: pytest.CaptureFixture[str], flags: tuple[str, ...]
) -> None:
    with pytest.raises(SystemExit) as exit_info:
        dispatch(["sample", str(trained), *flags])
    assert exit_info.value.code == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "inapplicable", "flags"),
    [
        (RUN, "--compile", ("--animation", "--label", "--guidance-scale", "--seed", "--device", "--out", "--export")),
        ("vae", "--animation", ("--show", "--num-samples", "--seed", "--device", "--out", "--export")),
        ("vae", "--compile", ()),
    ],
)
def test_help_and_parser_have_the_flags_of_the_run_only(
    trained: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    inapplicable: str,
    flags: tuple[str, ...],
) -> None:
    run = str(trained.parent / name)
    page = help_page(capsys, run)
    assert page.count("usage:") == 1
    assert page.startswith(f"usage: parnassus sample {name} ")
    assert inapplicable not in page
    assert all(flag in page for flag in flags)
    with pytest.raises(SystemExit) as exit_info:
        dispatch(["sample", run, inapplicable])
    assert exit_info.value.code == 2
    assert f"Unrecognized options: {inapplicable}" in capsys.readouterr().err


def help_page(capsys: pytest.CaptureFixture[str], run: str) -> str:
    capsys.readouterr()
    with pytest.raises(SystemExit) as exit_info:
        dispatch(["sample", run, "--help"])
    assert exit_info.value.code == 0
    return capsys.readouterr().out


def test_text_models_have_no_animation(text_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = help_page(capsys, str(text_run))
    assert "--compile" in page
    assert "--animation" not in page


def test_options_follow_from_the_methods_of_a_sampler() -> None:
    class Text:
        def write(self, _: nn.Module) -> Iterator[str]:
            yield ""

    class CompilableText(Text):
        def compile_layers(self, _: nn.Module) -> None: ...

    assert type(options_for(Text)) is SampleOptions
    assert type(options_for(CompilableText)) is CompileOptions


def test_flags_may_precede_the_run(trained: Path, tmp_path: Path) -> None:
    out = tmp_path / "samples"
    flags = ["--folder", str(trained.parent), "--device", "cpu", "--seed", "3"]
    assert dispatch(["sample", *flags, RUN, "--num-samples", "2", "--num-inference-steps", "2", "--out", str(out)]) == 0
    assert np.load(f"{out}.npy").shape == (2, 1, 8, 8)


def test_damaged_weights_are_detected(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "damaged"
    run.mkdir()
    for name in ("run.json", "model.json"):
        (run / name).write_bytes((trained / name).read_bytes())
    original = (trained / "weights.safetensors").read_bytes()
    header = 8 + int.from_bytes(original[:8], "little")
    random_source = random.Random(0)
    positions = [
        0,
        7,
        8,
        *random_source.sample(range(9, header), 6),
        *random_source.sample(range(header, len(original)), 3),
    ]
    for position in positions:
        changed = bytearray(original)
        changed[position] ^= 1 << random_source.randrange(8)
        (run / "weights.safetensors").write_bytes(bytes(changed))
        message = error_message(monkeypatch, capsys, str(run))
        assert "weights.safetensors" in message, (position, message)
    for length in (0, header, len(original) - 1):
        (run / "weights.safetensors").write_bytes(original[:length])
        assert "weights.safetensors is damaged" in error_message(monkeypatch, capsys, str(run))


@pytest.fixture(scope="module")
def text_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a language model with the smoke profile."""
    root = tmp_path_factory.mktemp("writing")
    text = root / "own.txt"
    text.write_text("the cat sat on the mat.\n" * 40, encoding="utf-8")
    flags = ["--profile", "smoke", "--device", "cpu", "--quiet", "--folder", str(root), "--name", "gpt"]
    assert dispatch(["run", "gpt", "--text", str(text), *flags]) == 0
    return root / "gpt"


def generate_text(run: Path, out: Path, capsys: pytest.CaptureFixture[str], *flags: str) -> str:
    """Generate text and return the streamed output, which must equal the written file."""
    capsys.readouterr()
    assert dispatch(["sample", str(run), "--out", str(out), "--device", "cpu", *flags]) == 0
    streamed = capsys.readouterr()
    assert streamed.err == f"text: {out}.txt\n"
    assert Path(f"{out}.txt").read_text(encoding="utf-8") == streamed.out
    return str(streamed.out)


@pytest.mark.parametrize("link", ["samples", "samples/seed-0.npy"])
def test_samples_are_not_written_through_a_link(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], link: str
) -> None:
    run, victim = tmp_path / "run", tmp_path / "victim"
    shutil.copytree(trained, run, ignore=shutil.ignore_patterns("samples"))
    victim.mkdir() if link == "samples" else victim.write_text("valuable")
    (run / link).parent.mkdir(exist_ok=True)
    (run / link).symlink_to(victim)
    assert "points outside the run's folder" in error_message(monkeypatch, capsys, str(run))
    assert list(victim.iterdir()) == [] if victim.is_dir() else victim.read_text() == "valuable"


def test_text_is_streamed_and_saved(text_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ("--prompt", "the cat", "--max-new-tokens", "50", "--temperature", "0.9", "--top-k", "9", "--top-p", "0.95")
    first, repeated = (
        generate_text(text_run, tmp_path / name, capsys, *flags, "--seed", "1") for name in ("first", "again")
    )
    assert first.startswith("the cat")
    assert len(first.removesuffix("\n")) in (len("the cat") + 49, len("the cat") + 50)  # the last may be a new line
    assert first == repeated
    assert first != generate_text(text_run, tmp_path / "other", capsys, *flags, "--seed", "2")
    assert not list(tmp_path.glob("*.npy"))


@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler here: apt-get install g++")
def test_compiled_model_generates_the_same_text(
    text_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ("--prompt", "the cat", "--max-new-tokens", "40", "--temperature", "0.01")  # longer than the window of 32
    plain = generate_text(text_run, tmp_path / "plain", capsys, *flags)
    words = ["-m", "parnassus", "sample", str(text_run), "--out", str(tmp_path / "compiled"), "--device", "cpu"]
    compiled = subprocess.run(  # in a subprocess, since runtime type checks cannot be compiled
        [sys.executable, *words, *flags, "--compile"], capture_output=True, text=True, check=True, timeout=300
    )
    assert compiled.stdout == plain


def test_text_before_an_interruption_is_saved(
    text_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class InterruptedSample:
        """Is interrupted after three pieces."""

        def write(self, _: nn.Module) -> Iterator[str]:
            yield from ("a", "b", "c")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        draw_samples(
            TrainedRun.open(RunFolder(text_run)),
            InterruptedSample(),
            SampleOptions(device="cpu", out=tmp_path / "part.txt"),
        )
    assert capsys.readouterr().out == "abc\n"
    assert (tmp_path / "part.txt").read_text(encoding="utf-8") == "abc\n"


def test_prompt_is_read_from_standard_input(
    text_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("the mat\n"))
    piped = generate_text(text_run, tmp_path / "piped", capsys, "--prompt", "-", "--max-new-tokens", "9")
    assert piped == generate_text(text_run, tmp_path / "given", capsys, "--prompt", "the mat", "--max-new-tokens", "9")


def test_prompts_longer_than_the_window_are_truncated_on_the_left(
    text_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prompt = "the cat sat on the mat.\n" * 9
    texts = [
        generate_text(text_run, tmp_path / "long", capsys, "--prompt", text, "--max-new-tokens", "8")
        for text in (prompt, prompt[-32:])
    ]
    assert texts[0].removeprefix(prompt) == texts[1].removeprefix(prompt[-32:])


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            ("--prompt", "Zürich"),
            "text must consist of the 12 characters of the alphabet; got 'Z' (U+005A), 'ü' (U+00FC), 'r'",
        ),
        (("--max-new-tokens", "0"), "--max-new-tokens must be at least 1; got 0"),
        (("--temperature", "-1"), "--temperature must be at least 0; got -1.0"),
        (("--top-k", "0"), "--top-k must be at least 1; got 0"),
        (("--top-p", "1.5"), "--top-p must be between 0 and 1; got 1.5"),
        (("--compile",), "torch.compile failed: no compiler; omit --compile"),
    ],
)
def test_invalid_text_flags_exit_with_one_line(
    text_run: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    flags: tuple[str, ...],
    message: str,
) -> None:
    def failing_compile(*_: object) -> Tensor:
        raise RuntimeError("no compiler")

    monkeypatch.setattr(torch, "compile", lambda _: failing_compile)
    assert error_message(monkeypatch, capsys, str(text_run), *flags).startswith(message)
    assert not (text_run / "samples").exists()


def test_exported_model_is_read_by_plain_torch(
    text_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "exported"
    assert dispatch(["sample", str(text_run), "--export", str(folder)]) == 0
    assert f"exported: {folder}" in capsys.readouterr().out
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "weights.safetensors"]
    code = (Path(__file__).parents[2] / "docs" / "plain_gpt.py").read_text(encoding="utf-8")
    reader = code.partition("\ndef ")[2].partition("# Greedy decoding")[0]
    assert len([line for line in reader.splitlines() if line.strip()]) <= 20
    assert "import parnassus" not in code
    assert "from parnassus" not in code
    completed = subprocess.run(
        [sys.executable, "-c", code, str(folder), "the cat", "25"], capture_output=True, text=True, check=True
    )
    greedy = generate_text(
        text_run, tmp_path / "ours", capsys, "--prompt", "the cat", "--max-new-tokens", "25", "--temperature", "0"
    )
    assert completed.stdout.strip() == greedy.strip()


def test_report_contains_the_generated_text(text_run: Path) -> None:
    report = (text_run / "report.html").read_text(encoding="utf-8")
    story = json.loads((text_run / "story.json").read_text(encoding="utf-8"))
    texts = [item["text"] for item in story.values() if item["kind"] == "text"]
    assert len(texts) == 2
    assert all(f"<pre>{escape(text)}</pre>" in report for text in texts)
