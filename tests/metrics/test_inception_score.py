import pytest
import torch

from parnassus.metrics.inception_score import inception_score


def test_score_of_certain_predictions_is_the_number_of_classes() -> None:
    certain = torch.eye(5).repeat(20, 1).clamp(min=1e-12).log()
    assert inception_score(certain) == pytest.approx(5.0, rel=1e-3)
    assert inception_score(torch.full((100, 5), 0.2).log()) == pytest.approx(1.0)
    assert inception_score(torch.eye(5)[:1].repeat(20, 1).log()) == pytest.approx(1.0)  # log 0 is allowed


def test_unnormalised_rows_raise_value_error() -> None:
    with pytest.raises(ValueError, match="each row must sum to one"):
        inception_score(torch.zeros(3, 2))
