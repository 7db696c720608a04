"""Errata of the first classifier's listings: code that fails, or does something else than stated (book sec. 1.4)."""

import struct
from collections.abc import Mapping
from math import log

import torch
from torch import nn

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, runs
from parnassus.data.files.idx import decode_idx, encode_idx
from parnassus.layers.classifier import Classifier, dense_classifier, dropout_classifier, evaluate
from parnassus.losses.classification import accuracy, cross_entropy
from parnassus.train.devices import choose_device
from parnassus.train.execute import versions


def execute_listing(listing: str, names: Mapping[str, object] | None = None) -> dict[str, object]:
    """Execute a listing and return its namespace."""
    namespace: dict[str, object] = dict(names or {})
    exec(compile(listing, "listing", "exec"), namespace)  # noqa: S102 - all listings are in this file
    return namespace


@claim("B1.4-1")
def the_torch_version_is_recorded() -> Evidence:
    """Every run records the version of torch, which is at least 1.12 as the text requires (book sec. 1.4)."""
    recorded = versions()["torch"]
    major, minor = (int(part) for part in recorded.split(".")[:2])
    return all_of(
        same_version=close(float(recorded == torch.__version__), 1.0),
        at_least_1_12=greater_equal(100 * major + minor, 100 * 1 + 12),
    )


@claim("B1.4-9")
def the_device_is_chosen_as_printed() -> Evidence:
    """CUDA if there is a GPU, else MPS on a Mac (missing in the listing), else the CPU (book sec. 1.4)."""
    printed = "cuda" if torch.cuda.is_available() else "cpu"
    chosen = choose_device("auto")
    is_mps = printed == "cpu" and chosen.type == "mps"
    return all_of(
        same=close(float(chosen.type == printed or is_mps), 1.0),
        computes=close(torch.ones(3, device=chosen).sum(), 3.0),
    )


def fashion_file() -> tuple[torch.Tensor, bytes]:
    """Two images of 28 × 28 pixels, and their file in the format of the data set."""
    pixels = torch.arange(2 * 28 * 28).remainder(251).to(torch.uint8).reshape(2, 28, 28)
    return pixels, struct.pack(">4B3I", 0, 0, 8, 3, 2, 28, 28) + bytes(pixels.flatten().tolist())


@erratum("B1.4-4", printed="a comment continued on the next line", right="the comment on one line")
def a_comment_ends_with_its_line() -> Correction:
    """In the call that loads the data the second half of a broken comment is a syntax error (book sec. 1.4)."""
    call = "data = load(\n    content=content, # training data\n    name='train', # converting an image to a{}tensor\n)"
    pixels, content = fashion_file()
    names = {"load": decode_idx, "content": content}
    data = execute_listing(call.format(" "), names)["data"]
    assert isinstance(data, torch.Tensor)
    return Correction(
        printed=runs(lambda: execute_listing(call.format("\n        "), names), unless=SyntaxError),
        corrected=all_of(
            shape=close(torch.tensor(data.shape), torch.tensor([2, 28, 28])), pixels=close(data.double(), pixels)
        ),
    )


@erratum("B1.4-4", printed="download=FALSE", right="download=False")
def false_is_not_upper_case() -> Correction:
    """Setting the argument as the comment says raises NameError; a file in place needs no download (book sec. 1.4)."""
    pixels, content = fashion_file()

    def load(*, download: bool) -> torch.Tensor:
        return decode_idx(b"" if download else encode_idx(pixels), "train")

    data = execute_listing("data = load(download=False)", {"load": load})["data"]
    assert isinstance(data, torch.Tensor)
    return Correction(
        printed=runs(lambda: execute_listing("data = load(download=FALSE)", {"load": load}), unless=NameError),
        corrected=all_of(pixels=close(data.double(), pixels), file=close(float(encode_idx(pixels) == content), 1.0)),
    )


def constant_classifier(inputs: int, classes: int) -> Classifier:
    """A classifier with weights 0: all classes have the same logit."""
    model = dense_classifier(inputs, classes, hidden=(5,))
    for parameter in model.parameters():
        nn.init.zeros_(parameter)
    return model


LOOP = """
for batch in range(101):
    losses.append(model.loss(x, y).item())
    {mark}
    if batch % 100 == 0:
        f'{{batch:.5d}}'
    {mark}
"""
"""The end of the printed training loop: an ellipsis before and after the progress message."""


@erratum("B1.4-11", printed="... around the progress message", right='""" around it, which disables it')
def an_ellipsis_disables_no_code() -> Correction:
    """An ellipsis is a no-op, so the faulty message still runs; triple quotes would disable it (book sec. 1.4)."""
    x, y = torch.randn(6, 4), torch.arange(6) % 3

    def run_loop(mark: str) -> torch.Tensor:
        names = {"losses": list[float](), "model": constant_classifier(4, 3), "x": x, "y": y}
        execute_listing(LOOP.format(mark=mark), names)
        return torch.tensor(names["losses"])

    return Correction(
        printed=runs(lambda: run_loop("..."), unless=ValueError),
        corrected=close(run_loop('"""'), torch.full((101,), log(3)), rtol=1e-6),
    )


@erratum("B1.4-11", printed="train_loop without model.train()", right="training mode before each epoch")
def training_needs_training_mode() -> Correction:
    """After a test in evaluation mode dropout stays off for the rest of training (book sec. 1.4)."""
    torch.manual_seed(0)
    model, x = dropout_classifier(20, 4, hidden=(32, 32)), torch.randn(16, 20)

    def difference() -> float:
        """Largest difference between two forward passes: 0 without dropout."""
        return float((model(x) - model(x)).abs().max().detach())

    model.eval()  # as after the test of the first epoch
    printed = greater_equal(difference(), 1e-3)
    model.train()
    in_training = difference()
    evaluate(model, x, torch.arange(16) % 4)
    return Correction(
        printed=printed,
        corrected=all_of(
            with_train=greater_equal(in_training, 1e-3),
            mode_is_restored_automatically=greater_equal(difference(), 1e-3),
        ),
    )


TEST_LOOP = """
for X, y in batches:
    pred = model(X)
{indent}test_loss += loss_fn(pred, y).item()
{indent}correct += (pred.argmax(1) == y).sum().item()
test_loss /= len(batches)
correct /= size
"""
"""The test loop, in which two lines lose their indentation at a page break."""


@erratum("B1.4-12", printed="sums outside the loop, after a page break", right="sums inside the loop")
def outside_the_loop_only_the_last_batch_counts() -> Correction:
    """With the printed indentation, loss and accuracy come from the last of five batches only (book sec. 1.4)."""
    torch.manual_seed(0)
    model, x, y = nn.Linear(6, 4), torch.randn(320, 6), torch.arange(320) % 4
    batches = list(zip(x.split(64), y.split(64), strict=True))

    def run_test_loop(indent: str) -> torch.Tensor:
        names = {"batches": batches, "model": model, "loss_fn": nn.CrossEntropyLoss(), "size": 320}
        results = execute_listing(TEST_LOOP.format(indent=indent), {**names, "test_loss": 0.0, "correct": 0.0})
        return torch.tensor([results["test_loss"], results["correct"]])

    logits = model(x)
    right = torch.stack([cross_entropy(logits, y).mean(), accuracy(logits, y)]).detach()
    return Correction(
        printed=close(run_test_loop(""), right, rtol=0.1),
        corrected=all_of(
            inside_loop=close(run_test_loop("    "), right, rtol=1e-5),
            at_most_a_fourth=greater_equal(right / run_test_loop(""), 4.0),
        ),
    )


@erratum("B1.4-12", printed="a string continued on the next line", right="the string on one line")
def a_string_literal_ends_with_its_line() -> Correction:
    """The last message of the test loop has a line break inside its quotes (book sec. 1.4)."""
    message = "text = f'Accuracy: {{(100*correct):>0.1f}}%, Avg{}loss: {{test_loss:>8f}}'"
    labels = torch.cat([torch.zeros(77), torch.ones(123)]).long()  # the classifier predicts class 0
    result = evaluate(constant_classifier(4, 10), torch.randn(200, 4), labels)
    names = {"correct": result.accuracy, "test_loss": result.loss}
    corrected = execute_listing(message.format(" "), names)["text"]
    return Correction(
        printed=runs(lambda: execute_listing(message.format("\n          "), names), unless=SyntaxError),
        corrected=close(float(corrected == "Accuracy: 38.5%, Avg loss: 2.302585"), 1.0),
    )


@erratum("B1.4-13", printed="a comment whose text follows as code", right="the text after its #")
def comment_text_needs_its_hash() -> Correction:
    """The # after the optimiser stands alone; the comment's text follows three lines below (book sec. 1.4)."""
    line = "optimizer = torch.optim.SGD(model.parameters(), lr=1e-3) #{}use SGD optimizer from torch.optim"
    names = {"torch": torch, "model": dense_classifier(5, 3, hidden=(4,))}
    optimizer = execute_listing(line.format(" "), names)["optimizer"]
    assert isinstance(optimizer, torch.optim.SGD)
    return Correction(
        printed=runs(lambda: execute_listing(line.format("\n\n"), names), unless=SyntaxError),
        corrected=all_of(
            learning_rate=close(optimizer.defaults["lr"], 1e-3),
            weights=close(sum(each.numel() for each in optimizer.param_groups[0]["params"]), 6 * 4 + 5 * 3),
        ),
    )
