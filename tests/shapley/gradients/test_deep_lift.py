"""DeepLIFT: values by hand, modules and functions, operations without a rule."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from parnassus.probability import standard_normal
from parnassus.shapley.attributions.model_adapters import ModelError
from parnassus.shapley.gradients.deep_lift import POOLING, RescaleRule, deep_lift, rescale_pooling, secant_slope

X, ZEROS = torch.tensor([[3.0, 1.0]], dtype=torch.float64), torch.zeros(1, 2, dtype=torch.float64)


def convolutional() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3),
        nn.BatchNorm2d(4),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        nn.Conv2d(4, 4, 2),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Dropout(0.5),
        nn.Flatten(),
        nn.Linear(4, 5),
        nn.GELU(),
        nn.Linear(5, 3),
    ).double()


def test_a_secant_by_hand() -> None:
    parts = deep_lift(lambda z: (z.sum(1) - 1).relu(), X, ZEROS)
    assert parts.values[0, 0].tolist() == pytest.approx([3 * 3 / 4, 3 / 4])  # from −1 to 3 the unit rises by 3
    parts = deep_lift(lambda z: z.square() @ torch.tensor([1.0, -1.0], dtype=torch.float64), X, ZEROS)
    assert parts.values[0, 0].tolist() == pytest.approx([9.0, -1.0])


def test_parts_sum_to_the_prediction_of_a_convolutional_network() -> None:
    model, x, background = convolutional(), standard_normal(3, 1, 8, 8), standard_normal(4, 1, 8, 8, seed=1)
    parts = deep_lift(model, x, background)
    assert parts.values.shape == (3, 3, 64)
    assert model.training
    assert torch.allclose(parts.prediction, model.eval()(x), atol=1e-12)
    one = torch.stack([deep_lift(model, x, low[None]).values for low in background]).mean(0)
    assert torch.allclose(parts.values, one, atol=1e-12)


def test_functions_are_seen_as_modules_are() -> None:
    model = convolutional().eval()
    had = model.state_dict()

    def written_out(z: Tensor) -> Tensor:
        z = functional.conv2d(z, had["0.weight"], had["0.bias"]) / (1 + 1e-5) ** 0.5  # the norm has seen nothing yet
        z = functional.max_pool2d(z.clamp(min=0), 2)
        z = torch.tanh(functional.conv2d(z, had["4.weight"], had["4.bias"])).mean((2, 3))
        z = functional.gelu(z @ had["9.weight"].mT + had["9.bias"])
        return functional.linear(z, had["11.weight"], had["11.bias"])

    x, background = standard_normal(2, 1, 8, 8), standard_normal(2, 1, 8, 8, seed=1)
    assert torch.allclose(written_out(x), model(x))
    ours = deep_lift(written_out, x, background).values
    assert torch.allclose(ours, deep_lift(model, x, background).values, atol=1e-12)


def test_a_linear_network_has_its_weights_for_multipliers() -> None:
    model = nn.Sequential(nn.Linear(5, 4), nn.Linear(4, 2)).double()
    x, background = standard_normal(3, 5), standard_normal(2, 5, seed=1)
    had = model.state_dict()
    weights = had["1.weight"] @ had["0.weight"]
    by_hand = weights * (x - background.mean(0))[:, None]
    assert torch.allclose(deep_lift(model, x, background).values, by_hand)


def test_a_number_that_does_not_change_has_its_own_slope() -> None:
    assert secant_slope(torch.zeros(2), torch.tensor([0.0, 2.0]), torch.tensor([0.7, 0.7])).tolist() == [
        pytest.approx(0.7),
        0.0,
    ]
    x = torch.tensor([[1.0, -1.0]], dtype=torch.float64)  # their sum stays 0, where the slope of exp is 1
    assert deep_lift(lambda z: z.sum(1).exp(), x, ZEROS).values[0, 0].tolist() == pytest.approx([1.0, -1.0])


def test_a_maximum_goes_with_the_larger_one_of_two() -> None:
    x = torch.tensor([[[1.0, 5.0, 0.0, 0.0]]], dtype=torch.float64)
    background = torch.tensor([[[2.0, 1.0, 3.0, 1.0]]], dtype=torch.float64)
    weights = torch.tensor([1.0, 10.0], dtype=torch.float64)
    parts = deep_lift(lambda z: functional.max_pool1d(z, 2)[:, 0] @ weights, x, background)
    assert parts.values[0, 0].tolist() == pytest.approx([0.0, 3.0, -30.0, 0.0])  # 2 → 5 and 3 → 0


def test_every_pooling_operation_has_a_rule() -> None:
    for name, window in POOLING.items():
        axes, size = int(name[-2]), 4 if name.startswith("adaptive") else 2
        h = standard_normal(2, 1, *[4] * axes).requires_grad_()
        func = getattr(functional, name)
        assert torch.equal(rescale_pooling(func, h, (size,), {}), window(h, size)[0])


def test_operations_without_a_rule_are_rejected() -> None:
    model, x, background = convolutional(), standard_normal(2, 1, 8, 8), standard_normal(2, 1, 8, 8, seed=1)
    with pytest.raises(ModelError, match="no rule for softmax"):
        deep_lift(nn.Sequential(model, nn.Softmax(1)), x, background)
    with pytest.raises(ModelError, match="no rule for mul of 2 tensors"):
        deep_lift(lambda z: z[:, :1] * z[:, 1:], X, ZEROS)
    with pytest.raises(ModelError, match="no rule for __rdiv__"):
        deep_lift(lambda z: 1 / (2 + z), X, ZEROS)
    with pytest.raises(ModelError, match="no rule for relu_"):
        deep_lift(lambda z: (z + 1).relu_().sum(1), X, ZEROS)
    with pytest.raises(ModelError, match="first axis must be the batch; relu received"):
        deep_lift(lambda z: z.mT.relu().sum(0), standard_normal(2, 3), standard_normal(1, 3, seed=1))
    with pytest.raises(ValueError, match="floating-point inputs"):
        deep_lift(model, x.long(), background)


def test_what_does_not_depend_on_the_input_is_left_alone() -> None:
    with RescaleRule(4):
        assert torch.equal(torch.ones(3).softmax(0) * torch.ones(3).exp(), torch.full((3,), torch.e / 3))
