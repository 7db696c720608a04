"""The names in the table of Keras counterparts exist."""

import pytest
from torch import nn

from parnassus.atlas.index import resolve
from parnassus.layers.keras_counterparts import COUNTERPARTS


@pytest.mark.parametrize("call", [each.torch for each in COUNTERPARTS if each.torch.startswith("nn.")])
def test_torch_name_exists(call: str) -> None:
    assert hasattr(nn, call.removeprefix("nn.").split("(")[0])


@pytest.mark.parametrize("name", [each.parnassus for each in COUNTERPARTS if each.parnassus])
def test_parnassus_name_exists(name: str) -> None:
    assert resolve(name) is not None


def test_keras_calls_are_unique() -> None:
    calls = [each.keras.split("(")[0] for each in COUNTERPARTS]
    assert len(calls) == len(set(calls))
