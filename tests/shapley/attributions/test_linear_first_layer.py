"""A shared linear first layer: the same worths as from mixed rows, on every device and by every method."""

from itertools import product

import pytest
import torch
from torch import Tensor, nn

from parnassus.probability import standard_normal
from parnassus.shapley.attributions import batching, linear_first_layer
from parnassus.shapley.attributions.attribution import explain, explain_exactly
from parnassus.shapley.attributions.interventional import Interventional
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


@pytest.mark.parametrize("together", [2**14, 28])
@pytest.mark.parametrize("device", DEVICES)
def test_worths_are_those_of_mixed_rows(device: str, together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "MAX_BATCH_SIZE", together)
    net, x, background = network().to(device), standard_normal(3, 5), standard_normal(7, 5, seed=1)
    value, plain = interventional_value_function(net, background), Interventional(as_model(net), background)
    assert isinstance(value, LinearFirstLayer)
    assert isinstance(value, BackgroundAverage)
    assert torch.allclose(value(x, all_coalitions(5)).cpu(), plain(x, all_coalitions(5)), atol=1e-12)
    asked = sample_coalition_sets(7, 5, 12).coalitions
    assert torch.allclose(value.per_background_row(x, asked).cpu(), plain.per_background_row(x, asked), atol=1e-12)
    assert value.per_background_row(x, asked).shape == (7, 3, 2, asked.shape[1])


RESTS: dict[str, list[nn.Module]] = {
    "a line": [],
    "one layer": [nn.ReLU(), nn.Linear(8, 2)],
    "layers": [nn.ReLU(), nn.Linear(8, 6), nn.Tanh(), nn.Sequential(nn.Linear(6, 4), nn.ReLU()), nn.Linear(4, 3)],
    "a line at the end without a bias": [nn.GELU(), nn.Linear(8, 3, bias=False)],
    "a bend at the end": [nn.ReLU(), nn.Linear(8, 3), nn.Softmax(-1)],
    "a number at the end": [nn.Tanh(), nn.Linear(8, 1), nn.Flatten(0)],
}
GROUPS = {"alone": None, "in groups": torch.tensor([[1, 0, 1, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0, 1, 1]]).bool()}


@pytest.mark.parametrize("together", [2**14, 40, 7], ids=["at once", "by a table", "by a table of few other rows"])
@pytest.mark.parametrize("groups", GROUPS.values(), ids=GROUPS)
@pytest.mark.parametrize("rest", RESTS.values(), ids=RESTS)
def test_worths_of_all_coalitions_equal_those_from_loops(
    rest: list[nn.Module], groups: Tensor | None, together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batching, "MAX_BATCH_SIZE", together)
    monkeypatch.setattr(linear_first_layer, "MIN_TABLE_SIZE", 4)
    torch.manual_seed(0)
    net, x, background = (
        nn.Sequential(nn.Linear(5, 8), *rest).double(),
        standard_normal(2, 5),
        standard_normal(7, 5, seed=1),
    )
    tables: list[int] = []
    enumerate_all = LinearFirstLayer._enumerate

    def counted(self: LinearFirstLayer, rows: Tensor, known: Tensor, most: int) -> Tensor:
        tables.append(self.background_size)
        return enumerate_all(self, rows, known, most)

    monkeypatch.setattr(LinearFirstLayer, "_enumerate", counted)
    value = interventional_value_function(net, background, groups)
    coalitions = all_coalitions(value.players)
    loops = torch.zeros(2, len(value(x, coalitions)[0]), len(coalitions), dtype=torch.float64)
    for number, players in enumerate(coalitions):
        known = players if groups is None else groups[players].any(0)
        for row, other in product(range(2), background):
            with torch.no_grad():
                loops[row, :, number] += net(torch.where(known, x[row], other)[None]).flatten() / 7
    tables.clear()
    assert torch.allclose(value(x, coalitions), loops, atol=1e-12)
    assert tables == {2**14: [], 40: [7], 7: 7 * [1]}[together]
    found = explain_exactly(value, x).values
    by_orders = torch.stack([permutation_table(worth).values for worth in loops.flatten(0, 1)]).view_as(found)
    assert torch.allclose(found, by_orders, atol=1e-12)


def test_coalitions_in_another_order_keep_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "MAX_BATCH_SIZE", 40)
    value, x, order = (
        interventional_value_function(network(), standard_normal(7, 5)),
        standard_normal(3, 5, seed=1),
        torch.arange(32).flip(0),
    )
    assert torch.allclose(value(x, all_coalitions(5)[order]), value(x, all_coalitions(5))[..., order], atol=1e-12)


def test_each_row_of_the_background_is_a_game_of_its_own() -> None:
    net, x, background = network(), standard_normal(3, 5), standard_normal(4, 5, seed=1)
    asked = sample_coalition_sets(4, 5, 12).coalitions
    for value in (interventional_value_function(net, background), Interventional(as_model(net), background)):
        together = value.per_background_row(x, asked)
        for other in range(4):
            alone = value.subset(slice(other, other + 1))
            assert alone.background_size == 1
            assert torch.allclose(together[other], alone(x, asked[other]), atol=1e-12)
        same = all_coalitions(5)[None].expand(4, -1, -1)
        assert torch.allclose(value.per_background_row(x, same).mean(0), value(x, all_coalitions(5)), atol=1e-12)


def test_groups_and_single_precision() -> None:
    groups = torch.tensor([[True, False, True, False, False], [False, True, False, True, True]])
    net, x, background = network().float(), standard_normal(3, 5).float(), standard_normal(4, 5, seed=1).float()
    value = interventional_value_function(net, background, groups)
    assert value.players == 2
    plain = Interventional(as_model(net), background, groups)
    assert torch.allclose(value(x, all_coalitions(2)), plain(x, all_coalitions(2)), atol=1e-6)
    assert value(x, all_coalitions(2)).dtype == torch.float64


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("begins", ["with a linear layer", "with another"])
def test_parts_lie_where_the_rows_do(device: str, begins: str) -> None:
    net = network().to(device)
    value = interventional_value_function(
        net if begins == "with a linear layer" else nn.Sequential(nn.Tanh(), net), standard_normal(6, 5)
    )
    assert isinstance(value, LinearFirstLayer) == (begins == "with a linear layer")
    x = standard_normal(2, 5, seed=1)
    found, exact = explain(value, x, 24, generator=torch.Generator().manual_seed(0)), explain_exactly(value, x)
    assert found.values.device == exact.values.device == x.device
    assert torch.allclose(found.prediction, exact.prediction, atol=1e-10)


def test_only_what_is_surely_a_linear_layer_is_shared() -> None:
    background = standard_normal(4, 5)
    hooked = network()
    hooked[0].register_forward_hook(lambda module, inputs, output: 2 * output)
    whole = network()
    whole.register_forward_hook(lambda module, inputs, output: output.square())
    for predictor in (hooked, whole, nn.Sequential(), nn.Tanh(), lambda x: x.sum(1)):
        assert isinstance(interventional_value_function(predictor, background), Interventional)
    assert isinstance(interventional_value_function(nn.Linear(5, 1).double(), background), LinearFirstLayer)


def test_a_last_layer_with_hooks_receives_all_inputs() -> None:
    net, x, background = network(), standard_normal(2, 5), standard_normal(4, 5, seed=1)
    net[-1].register_forward_hook(lambda module, inputs, output: output.square())
    value = interventional_value_function(net, background)
    assert isinstance(value, LinearFirstLayer)
    assert torch.allclose(
        value(x, all_coalitions(5)), Interventional(as_model(net), background)(x, all_coalitions(5)), atol=1e-12
    )


def test_what_others_see_is_not_written_over() -> None:
    torch.manual_seed(0)
    net, seen = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1)).double(), []
    net[2].register_forward_hook(lambda module, inputs, output: seen.append((output, output.clone())))
    interventional_value_function(net, standard_normal(4, 5))(standard_normal(2, 5, seed=1), all_coalitions(5))
    assert seen
    assert all(torch.equal(now, then) for now, then in seen)
    assert not net[1].inplace


@pytest.mark.parametrize("training", [True, False])
def test_a_network_is_left_as_it_was(training: bool) -> None:
    net = network().train(training)
    explain(interventional_value_function(net, standard_normal(4, 5)), standard_normal(1, 5), 20)
    assert all(module.training == training for module in net.modules())


def test_wrong_input_is_rejected() -> None:
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
