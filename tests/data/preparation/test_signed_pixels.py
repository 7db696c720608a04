"""Pixels in [−1, 1], and the check for labelled images."""

import pytest
import torch

from parnassus.data import DataError, load_digits, open_data
from parnassus.data.preparation.signed_pixels import signed_labelled_images, signed_pixels


def test_pixels_are_rescaled_and_labels_are_kept() -> None:
    digits = load_digits()
    signed = signed_pixels(digits)
    assert float(signed.train.x.min()) == -1
    assert float(signed.train.x.max()) == 1
    torch.testing.assert_close((signed.test.x + 1) / 2, digits.test.x)
    assert signed.test.y is digits.test.y
    assert torch.equal(signed_labelled_images(digits).train.x, signed.train.x)


def test_tables_raise_data_error() -> None:
    with pytest.raises(DataError, match="must consist of images with class labels; its examples have shape"):
        signed_labelled_images(open_data("iris"))
