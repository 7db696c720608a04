import pytest
import torch

from parnassus.losses.shapes import require_alike


def test_alike_things_pass() -> None:
    require_alike(torch.zeros(3, 2), torch.ones(3, 2))


@pytest.mark.parametrize(
    ("prediction", "target", "sentence"),
    [
        ((5, 1), (5,), r"must have one shape; got \(5, 1\) and \(5,\)"),
        ((5,), (3,), r"must have one shape; got \(5,\) and \(3,\)"),
        ((0, 2), (0, 2), r"at least one example; got shape \(0, 2\)"),
    ],
)
def test_what_does_not_fit_gets_a_sentence(prediction: tuple[int, ...], target: tuple[int, ...], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        require_alike(torch.zeros(prediction), torch.zeros(target))
