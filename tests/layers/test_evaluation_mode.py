import pytest
import torch
from torch import nn

from parnassus.layers import evaluation_mode


def test_every_module_regains_its_own_mode_also_after_an_error() -> None:
    model = nn.Sequential(nn.Dropout(), nn.Dropout())
    model[1].eval()
    with evaluation_mode(model):
        assert not any(module.training for module in model.modules())
    assert [module.training for module in model.modules()] == [True, True, False]
    with pytest.raises(RuntimeError), evaluation_mode(model):
        model(torch.ones(1)) @ torch.ones(2)
    assert [module.training for module in model.modules()] == [True, True, False]


def test_functions_have_no_mode() -> None:
    with evaluation_mode(torch.relu):
        assert float(torch.relu(torch.tensor(-1.0))) == 0.0
