"""DeepLIFT: closed forms, modules and functions, operations without a rule."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from parnassus.probability import standard_normal
from parnassus.shapley.attributions.model_adapters import ModelError
from parnassus.shapley.gradients.deep_lift import POOLING, RescaleRule, deep_lift, rescale_pooling, secant_slope

X, ZEROS = torch.tensor([[3.0, 1.0]], dtype=torch.float64), torch.zeros(1, 2, dtype=torch.float64)


def convolutional_network() -> nn.Sequential:
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


def test_rescale_rule_matches_closed_form() -> None:
    attribution = deep_lift(lambda z: (z.sum(1) - 1).relu(), X, ZEROS)
    assert attribution.values[0, 0].tolist() == pytest.approx([3 * 3 / 4, 3 / 4])  # from −1 to 3 the unit rises by 3
    attribution = deep_lift(lambda z: z.square() @ torch.tensor([1.0, -1.0], dtype=torch.float64), X, ZEROS)
    assert attribution.values[0, 0].tolist() == pytest.approx([9.0, -1.0])


def test_attributions_of_a_convolutional_network_sum_to_the_prediction() -> None:
    model, x, background = convolutional_network(), standard_normal(3, 1, 8, 8), standard_normal(4, 1, 8, 8, seed=1)
    attribution = deep_lift(model, x, background)
    assert attribution.values.shape == (3, 3, 64)
    assert model.training
    assert torch.allclose(attribution.prediction, model.eval()(x), atol=1e-12)
    averaged = torch.stack([deep_lift(model, x, baseline[None]).values for baseline in background]).mean(0)
    assert torch.allclose(attribution.values, averaged, atol=1e-12)


def test_functional_calls_give_the_same_attributions_as_modules() -> None:
    model = convolutional_network().eval()
    state = model.state_dict()

    def functional_model(z: Tensor) -> Tensor:
        # the running statistics are at their initial values
        z = functional.conv2d(z, state["0.weight"], state["0.bias"]) / (1 + 1e-5) ** 0.5
        z = functional.max_pool2d(z.clamp(min=0), 2)
        z = torch.tanh(functional.conv2d(z, state["4.weight"], state["4.bias"])).mean((2, 3))
        z = functional.gelu(z @ state["9.weight"].mT + state["9.bias"])
        return functional.linear(z, state["11.weight"], state["11.bias"])

    x, background = standard_normal(2, 1, 8, 8), standard_normal(2, 1, 8, 8, seed=1)
    assert torch.allclose(functional_model(x), model(x))
    from_function = deep_lift(functional_model, x, background).values
    assert torch.allclose(from_function, deep_lift(model, x, background).values, atol=1e-12)


def test_multipliers_of_a_linear_network_are_its_weights() -> None:
    model = nn.Sequential(nn.Linear(5, 4), nn.Linear(4, 2)).double()
    x, background = standard_normal(3, 5), standard_normal(2, 5, seed=1)
    state = model.state_dict()
    weights = state["1.weight"] @ state["0.weight"]
    expected = weights * (x - background.mean(0))[:, None]
    assert torch.allclose(deep_lift(model, x, background).values, expected)


def test_unchanged_activation_uses_its_gradient() -> None:
    assert secant_slope(torch.zeros(2), torch.tensor([0.0, 2.0]), torch.tensor([0.7, 0.7])).tolist() == [
        pytest.approx(0.7),
        0.0,
    ]
    x = torch.tensor([[1.0, -1.0]], dtype=torch.float64)  # the sum stays 0, where the derivative of exp is 1
    assert deep_lift(lambda z: z.sum(1).exp(), x, ZEROS).values[0, 0].tolist() == pytest.approx([1.0, -1.0])


def test_max_pooling_assigns_the_change_to_the_larger_of_input_and_baseline() -> None:
    x = torch.tensor([[[1.0, 5.0, 0.0, 0.0]]], dtype=torch.float64)
    background = torch.tensor([[[2.0, 1.0, 3.0, 1.0]]], dtype=torch.float64)
    weights = torch.tensor([1.0, 10.0], dtype=torch.float64)
    attribution = deep_lift(lambda z: functional.max_pool1d(z, 2)[:, 0] @ weights, x, background)
    assert attribution.values[0, 0].tolist() == pytest.approx([0.0, 3.0, -30.0, 0.0])  # 2 → 5 and 3 → 0


def test_every_pooling_operation_has_a_rule() -> None:
    for name, pool in POOLING.items():
        axes, size = int(name[-2]), 4 if name.startswith("adaptive") else 2
        h = standard_normal(2, 1, *[4] * axes).requires_grad_()
        func = getattr(functional, name)
        assert torch.equal(rescale_pooling(func, h, (size,), {}), pool(h, size)[0])


def test_operations_without_a_rule_raise_model_error() -> None:
    model, x, background = convolutional_network(), standard_normal(2, 1, 8, 8), standard_normal(2, 1, 8, 8, seed=1)
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


def test_operations_on_constants_are_unchanged() -> None:
    with RescaleRule(4):
        assert torch.equal(torch.ones(3).softmax(0) * torch.ones(3).exp(), torch.full((3,), torch.e / 3))
