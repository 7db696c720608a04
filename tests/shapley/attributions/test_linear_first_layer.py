"""A shared linear first layer gives the worths of mixed rows on every device and by every method."""

from itertools import product

import pytest
import torch
from torch import Tensor, nn

from parnassus.probability import standard_normal
from parnassus.shapley.attributions import batching, linear_first_layer
from parnassus.shapley.attributions.attribution import explain, explain_exactly
from parnassus.shapley.attributions.interventional import InterventionalValue
from parnassus.shapley.attributions.linear_first_layer import LinearFirstLayer, interventional_value_function
from parnassus.shapley.attributions.model_adapters import ModelError, as_model
from parnassus.shapley.attributions.value_functions import BackgroundAverage
from parnassus.shapley.estimators.coalition_sampling import sample_coalition_sets
from parnassus.shapley.games.cooperative_games import all_coalitions
from parnassus.shapley.games.shapley_values import permutation_table

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def network(features: int = 5, outputs: int = 2) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(features, 8), nn.Tanh(), nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5)), nn.Linear(8, outputs)
    ).double()


@pytest.mark.parametrize("batch_size", [2**14, 28])
@pytest.mark.parametrize("device", DEVICES)
def test_worths_equal_those_of_mixed_rows(device: str, batch_size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "MAX_BATCH_SIZE", batch_size)
    net, x, background = network().to(device), standard_normal(3, 5), standard_normal(7, 5, seed=1)
    value, reference = interventional_value_function(net, background), InterventionalValue(as_model(net), background)
    assert isinstance(value, LinearFirstLayer)
    assert isinstance(value, BackgroundAverage)
    assert torch.allclose(value(x, all_coalitions(5)).cpu(), reference(x, all_coalitions(5)), atol=1e-12)
    coalitions = sample_coalition_sets(7, 5, 12).coalitions
    assert torch.allclose(
        value.per_background_row(x, coalitions).cpu(), reference.per_background_row(x, coalitions), atol=1e-12
    )
    assert value.per_background_row(x, coalitions).shape == (7, 3, 2, coalitions.shape[1])


REMAINING_LAYERS: dict[str, list[nn.Module]] = {
    "linear": [],
    "one layer": [nn.ReLU(), nn.Linear(8, 2)],
    "layers": [nn.ReLU(), nn.Linear(8, 6), nn.Tanh(), nn.Sequential(nn.Linear(6, 4), nn.ReLU()), nn.Linear(4, 3)],
    "last layer without a bias": [nn.GELU(), nn.Linear(8, 3, bias=False)],
    "softmax at the end": [nn.ReLU(), nn.Linear(8, 3), nn.Softmax(-1)],
    "scalar output": [nn.Tanh(), nn.Linear(8, 1), nn.Flatten(0)],
}
GROUPS = {"alone": None, "in groups": torch.tensor([[1, 0, 1, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0, 1, 1]]).bool()}


@pytest.mark.parametrize("batch_size", [2**14, 40, 7], ids=["at once", "by a table", "by a table of few other rows"])
@pytest.mark.parametrize("groups", GROUPS.values(), ids=GROUPS)
@pytest.mark.parametrize("remaining", REMAINING_LAYERS.values(), ids=REMAINING_LAYERS)
def test_worths_of_all_coalitions_match_explicit_loops(
    remaining: list[nn.Module], groups: Tensor | None, batch_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batching, "MAX_BATCH_SIZE", batch_size)
    monkeypatch.setattr(linear_first_layer, "MIN_TABLE_SIZE", 4)
    torch.manual_seed(0)
    net, x, background = (
        nn.Sequential(nn.Linear(5, 8), *remaining).double(),
        standard_normal(2, 5),
        standard_normal(7, 5, seed=1),
    )
    table_sizes: list[int] = []
    original = LinearFirstLayer._enumerate

    def counting_enumerate(self: LinearFirstLayer, rows: Tensor, is_known: Tensor, most: int) -> Tensor:
        table_sizes.append(self.background_size)
        return original(self, rows, is_known, most)

    monkeypatch.setattr(LinearFirstLayer, "_enumerate", counting_enumerate)
    value = interventional_value_function(net, background, groups)
    coalitions = all_coalitions(value.players)
    expected = torch.zeros(2, len(value(x, coalitions)[0]), len(coalitions), dtype=torch.float64)
    for index, players in enumerate(coalitions):
        is_known = players if groups is None else groups[players].any(0)
        for row, background_row in product(range(2), background):
            with torch.no_grad():
                expected[row, :, index] += net(torch.where(is_known, x[row], background_row)[None]).flatten() / 7
    table_sizes.clear()
    assert torch.allclose(value(x, coalitions), expected, atol=1e-12)
    assert table_sizes == {2**14: [], 40: [7], 7: 7 * [1]}[batch_size]
    shapley_values = explain_exactly(value, x).values
    from_permutations = torch.stack([permutation_table(worth).values for worth in expected.flatten(0, 1)]).view_as(
        shapley_values
    )
    assert torch.allclose(shapley_values, from_permutations, atol=1e-12)


def test_worths_follow_the_order_of_coalitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "MAX_BATCH_SIZE", 40)
    value, x, order = (
        interventional_value_function(network(), standard_normal(7, 5)),
        standard_normal(3, 5, seed=1),
        torch.arange(32).flip(0),
    )
    assert torch.allclose(value(x, all_coalitions(5)[order]), value(x, all_coalitions(5))[..., order], atol=1e-12)


def test_worths_per_background_row_equal_those_of_single_row_backgrounds() -> None:
    net, x, background = network(), standard_normal(3, 5), standard_normal(4, 5, seed=1)
    coalitions = sample_coalition_sets(4, 5, 12).coalitions
    for value in (interventional_value_function(net, background), InterventionalValue(as_model(net), background)):
        batched = value.per_background_row(x, coalitions)
        for index in range(4):
            single = value.subset(slice(index, index + 1))
            assert single.background_size == 1
            assert torch.allclose(batched[index], single(x, coalitions[index]), atol=1e-12)
        repeated = all_coalitions(5)[None].expand(4, -1, -1)
        assert torch.allclose(value.per_background_row(x, repeated).mean(0), value(x, all_coalitions(5)), atol=1e-12)


def test_groups_and_single_precision() -> None:
    groups = torch.tensor([[True, False, True, False, False], [False, True, False, True, True]])
    net, x, background = network().float(), standard_normal(3, 5).float(), standard_normal(4, 5, seed=1).float()
    value = interventional_value_function(net, background, groups)
    assert value.players == 2
    reference = InterventionalValue(as_model(net), background, groups)
    assert torch.allclose(value(x, all_coalitions(2)), reference(x, all_coalitions(2)), atol=1e-6)
    assert value(x, all_coalitions(2)).dtype == torch.float64


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("first_layer", ["with a linear layer", "with another"])
def test_attributions_are_on_the_device_of_the_inputs(device: str, first_layer: str) -> None:
    net = network().to(device)
    value = interventional_value_function(
        net if first_layer == "with a linear layer" else nn.Sequential(nn.Tanh(), net), standard_normal(6, 5)
    )
    assert isinstance(value, LinearFirstLayer) == (first_layer == "with a linear layer")
    x = standard_normal(2, 5, seed=1)
    sampled, exact = explain(value, x, 24, generator=torch.Generator().manual_seed(0)), explain_exactly(value, x)
    assert sampled.values.device == exact.values.device == x.device
    assert torch.allclose(sampled.prediction, exact.prediction, atol=1e-10)


def test_only_plain_linear_first_layers_are_shared() -> None:
    background = standard_normal(4, 5)
    with_layer_hook = network()
    with_layer_hook[0].register_forward_hook(lambda module, inputs, output: 2 * output)
    with_global_hook = network()
    with_global_hook.register_forward_hook(lambda module, inputs, output: output.square())
    with_pre_hook = network()
    with_pre_hook[0].register_forward_pre_hook(lambda module, inputs: (2 * inputs[0],))
    for predictor in (with_layer_hook, with_global_hook, with_pre_hook, nn.Sequential(), nn.Tanh(), lambda x: x.sum(1)):
        assert isinstance(interventional_value_function(predictor, background), InterventionalValue)
    assert isinstance(interventional_value_function(nn.Linear(5, 1).double(), background), LinearFirstLayer)


def test_a_last_layer_with_hooks_receives_all_inputs() -> None:
    net, x, background = network(), standard_normal(2, 5), standard_normal(4, 5, seed=1)
    net[-1].register_forward_hook(lambda module, inputs, output: output.square())
    value = interventional_value_function(net, background)
    assert isinstance(value, LinearFirstLayer)
    assert torch.allclose(
        value(x, all_coalitions(5)), InterventionalValue(as_model(net), background)(x, all_coalitions(5)), atol=1e-12
    )


def test_intermediate_outputs_are_not_overwritten() -> None:
    torch.manual_seed(0)
    net, outputs = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1)).double(), []
    net[2].register_forward_hook(lambda module, inputs, output: outputs.append((output, output.clone())))
    interventional_value_function(net, standard_normal(4, 5))(standard_normal(2, 5, seed=1), all_coalitions(5))
    assert outputs
    assert all(torch.equal(current, copy) for current, copy in outputs)
    assert not net[1].inplace


@pytest.mark.parametrize("training", [True, False])
def test_training_mode_is_restored(training: bool) -> None:
    net = network().train(training)
    explain(interventional_value_function(net, standard_normal(4, 5)), standard_normal(1, 5), 20)
    assert all(module.training == training for module in net.modules())


def test_invalid_inputs_raise_errors() -> None:
    value = interventional_value_function(network(), standard_normal(4, 5))
    with pytest.raises(ValueError, match="same features; got 3 and 5"):
        value(standard_normal(2, 3), all_coalitions(5))
    with pytest.raises(ValueError, match="same features; got 5 and 4"):
        interventional_value_function(network(), standard_normal(4, 4))
    with pytest.raises(ValueError, match="rows of features"):
        interventional_value_function(network(), standard_normal(4, 5)[:0])
    with pytest.raises(ValueError, match="in one group"):
        interventional_value_function(network(), standard_normal(4, 5), torch.ones(2, 5, dtype=torch.bool))
    broken = network()
    with torch.no_grad():
        next(broken.parameters()).fill_(float("nan"))
    with pytest.raises(ModelError, match="returned"):
        explain(interventional_value_function(broken, standard_normal(4, 5)), standard_normal(1, 5), 20)
