"""Listings of the first classifier that do not run as printed, or run and do something else (book sec. 1.4)."""

from collections.abc import Mapping

import torch
from torch import nn

from parnassus.atlas import Correction, Evidence, all_of, at_least, claim, close, erratum, runs
from parnassus.layers.classifier import dropout_classifier, evaluate
from parnassus.losses.classification import accuracy, cross_entropy
from parnassus.train.devices import choose_device
from parnassus.train.execute import versions


def run(listing: str, names: Mapping[str, object] | None = None) -> dict[str, object]:
    """Carry out the lines of a listing and hand back its names."""
    found: dict[str, object] = dict(names or {})
    exec(compile(listing, "listing", "exec"), found)  # noqa: S102 - every listing stands in this file
    return found


@claim("B1.4-1")
def the_version_of_torch_is_on_record() -> Evidence:
    """What every run notes down is what the text prints, and no older than its 1.12 (book sec. 1.4)."""
    noted = versions()["torch"]
    major, minor = (int(part) for part in noted.split(".")[:2])
    return all_of(
        as_the_text_prints_it=close(float(noted == torch.__version__), 1.0),
        not_older=at_least(100 * major + minor, 100 * 1 + 12),
    )


@claim("B1.4-9")
def a_device_is_chosen_as_in_the_printed_line() -> Evidence:
    """CUDA where there is a GPU, else the CPU, or the accelerator of a Mac that the line forgets (book sec. 1.4)."""
    printed = "cuda" if torch.cuda.is_available() else "cpu"
    chosen = choose_device("auto")
    forgotten = printed == "cpu" and chosen.type == "mps"
    return all_of(
        same=close(float(chosen.type == printed or forgotten), 1.0),
        computes=close(torch.ones(3, device=chosen).sum(), 3.0),
    )


@erratum("B1.4-4", printed="a comment that goes on in the next line", right="one comment, on one line")
def a_comment_does_not_go_on_by_itself() -> Correction:
    """The call that loads the data breaks a comment in two, and its second half is no Python (book sec. 1.4)."""
    call = "data = dict(\n    train=True, # training data\n    transform=float # converting an image to a{}tensor\n)"
    mended = run(call.format(" "))["data"]
    assert isinstance(mended, dict)
    return Correction(
        printed=runs(lambda: run(call.format("\n        ")), unless=SyntaxError),
        corrected=all_of(arguments=close(len(mended), 2), training_data=close(float(mended["train"] is True), 1.0)),
    )


@erratum("B1.4-4", printed="download=FALSE", right="download=False")
def false_has_one_capital() -> Correction:
    """A reader who sets what the comment says meets a name that Python does not know (book sec. 1.4)."""
    return Correction(
        printed=runs(lambda: run("data = dict(download=FALSE)"), unless=NameError),
        corrected=close(float(run("download = False")["download"] is False), 1.0),
    )


LOOP = """
for batch in range(101):
    steps.append(batch)
    {mark}
    if batch % 100 == 0:
        f'{{batch:.5d}}'
    {mark}
"""
"""The end of the printed training loop: rows of dots around the progress message."""


@erratum("B1.4-11", printed="... around the progress message", right='""" around it, which takes it out')
def dots_take_nothing_out() -> Correction:
    """Python passes over three dots, and the faulty message between them runs; quotes would stop it (book sec. 1.4)."""
    steps: list[int] = []

    def trained(mark: str) -> int:
        steps.clear()
        run(LOOP.format(mark=mark), {"steps": steps})
        return len(steps)

    return Correction(printed=runs(lambda: trained("..."), unless=ValueError), corrected=close(trained('"""'), 101))


@erratum("B1.4-11", printed="train_loop without model.train()", right="training mode before each epoch")
def training_needs_training_mode() -> Correction:
    """After a test in evaluation mode dropout stays off for the rest of training (book sec. 1.4)."""
    torch.manual_seed(0)
    model, x = dropout_classifier(20, 4, hidden=(32, 32)), torch.randn(16, 20)

    def scatter() -> float:
        """How far two passes in a row are apart: 0 without dropout."""
        return float((model(x) - model(x)).abs().max().detach())

    model.eval()  # the test of the first epoch; the printed loop then goes on
    printed = at_least(scatter(), 1e-3)
    model.train()
    fresh = scatter()
    evaluate(model, x, torch.arange(16) % 4)
    return Correction(
        printed=printed,
        corrected=all_of(with_train=at_least(fresh, 1e-3), ours_goes_back_by_itself=at_least(scatter(), 1e-3)),
    )


TEST_LOOP = """
for X, y in batches:
    pred = model(X)
{indent}test_loss += loss_fn(pred, y).item()
{indent}correct += (pred.argmax(1) == y).sum().item()
test_loss /= len(batches)
correct /= size
"""
"""The test loop; at a page break two of its lines lose what puts them inside the loop."""


@erratum("B1.4-12", printed="sums outside the loop, after a page break", right="sums inside the loop")
def outside_the_loop_only_the_last_batch_counts() -> Correction:
    """With the indentation as printed, loss and accuracy come from one batch in five (book sec. 1.4)."""
    torch.manual_seed(0)
    model, x, y = nn.Linear(6, 4), torch.randn(320, 6), torch.arange(320) % 4
    batches = list(zip(x.split(64), y.split(64), strict=True))

    def tested(indent: str) -> torch.Tensor:
        names = {"batches": batches, "model": model, "loss_fn": nn.CrossEntropyLoss(), "size": 320}
        found = run(TEST_LOOP.format(indent=indent), {**names, "test_loss": 0.0, "correct": 0.0})
        return torch.tensor([found["test_loss"], found["correct"]])

    logits = model(x)
    right = torch.stack([cross_entropy(logits, y).mean(), accuracy(logits, y)]).detach()
    return Correction(
        printed=close(tested(""), right, rtol=0.1),
        corrected=all_of(inside=close(tested("    "), right, rtol=1e-5), a_fifth=at_least(right / tested(""), 4.0)),
    )


@erratum("B1.4-12", printed="a string that goes on in the next line", right="one string, on one line")
def a_string_does_not_go_on_by_itself() -> Correction:
    """The last message of the test loop is broken inside its quotes (book sec. 1.4)."""
    message = "text = f'Accuracy: {{(100*correct):>0.1f}}%, Avg{}loss: {{test_loss:>8f}}'"
    names = {"correct": 0.385, "test_loss": 2.218973}
    mended = run(message.format(" "), names)["text"]
    return Correction(
        printed=runs(lambda: run(message.format("\n          "), names), unless=SyntaxError),
        corrected=close(float(mended == "Accuracy: 38.5%, Avg loss: 2.218973"), 1.0),
    )


@erratum("B1.4-13", printed="a comment whose words follow as code", right="the words behind their #")
def words_without_a_hash_are_code() -> Correction:
    """Behind the optimiser stands a # alone; what it should hide follows three lines below (book sec. 1.4)."""
    line = "optimizer = torch.optim.SGD(model.parameters(), lr=1e-3) #{}use SGD optimizer from torch.optim"
    names = {"torch": torch, "model": nn.Linear(2, 1)}
    optimizer = run(line.format(" "), names)["optimizer"]
    assert isinstance(optimizer, torch.optim.SGD)
    return Correction(
        printed=runs(lambda: run(line.format("\n\n"), names), unless=SyntaxError),
        corrected=close(optimizer.defaults["lr"], 1e-3),
    )
