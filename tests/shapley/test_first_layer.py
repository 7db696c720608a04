"""A linear layer shared between rows: the same worths as mixing rows, on every device, in every way of asking."""

from itertools import product

import pytest
import torch
from torch import Tensor, nn

from parnassus.shapley import first_layer, portions
from parnassus.shapley.attribution import explain, explain_exactly
from parnassus.shapley.coalitions import drawn_sets
from parnassus.shapley.first_layer import LinearFirst, interventional
from parnassus.shapley.game import members
from parnassus.shapley.masking import Interventional, MeanOfGames
from parnassus.shapley.model import ModelError, as_model
from parnassus.shapley.values import by_all_orders

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def normals(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def network(features: int = 5, outputs: int = 2) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(features, 8), nn.Tanh(), nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5)), nn.Linear(8, outputs)
    ).double()


@pytest.mark.parametrize("together", [2**14, 28])
@pytest.mark.parametrize("device", DEVICES)
def test_worths_are_those_of_mixed_rows(device: str, together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portions, "ROWS", together)
    net, x, background = network().to(device), normals(3, 5), normals(7, 5, seed=1)
    value, plain = interventional(net, background), Interventional(as_model(net), background)
    assert isinstance(value, LinearFirst)
    assert isinstance(value, MeanOfGames)
    assert torch.allclose(value(x, members(5)).cpu(), plain(x, members(5)), atol=1e-12)
    asked = drawn_sets(7, 5, 12).coalitions
    assert torch.allclose(value.each(x, asked).cpu(), plain.each(x, asked), atol=1e-12)
    assert value.each(x, asked).shape == (7, 3, 2, asked.shape[1])


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
def test_all_coalitions_are_worth_what_loops_say(
    rest: list[nn.Module], groups: Tensor | None, together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(portions, "ROWS", together)
    monkeypatch.setattr(first_layer, "TABLE", 4)
    torch.manual_seed(0)
    net, x, background = nn.Sequential(nn.Linear(5, 8), *rest).double(), normals(2, 5), normals(7, 5, seed=1)
    tables: list[int] = []
    every = LinearFirst.every

    def counted(self: LinearFirst, rows: Tensor, known: Tensor, most: int) -> Tensor:
        tables.append(self.others)
        return every(self, rows, known, most)

    monkeypatch.setattr(LinearFirst, "every", counted)
    value = interventional(net, background, groups)
    coalitions = members(value.players)
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
    by_orders = torch.stack([by_all_orders(worth).values for worth in loops.flatten(0, 1)]).view_as(found)
    assert torch.allclose(found, by_orders, atol=1e-12)


def test_coalitions_in_another_order_keep_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portions, "ROWS", 40)
    value, x, order = interventional(network(), normals(7, 5)), normals(3, 5, seed=1), torch.arange(32).flip(0)
    assert torch.allclose(value(x, members(5)[order]), value(x, members(5))[..., order], atol=1e-12)


def test_each_row_of_the_background_is_a_game_of_its_own() -> None:
    net, x, background = network(), normals(3, 5), normals(4, 5, seed=1)
    asked = drawn_sets(4, 5, 12).coalitions
    for value in (interventional(net, background), Interventional(as_model(net), background)):
        together = value.each(x, asked)
        for other in range(4):
            alone = value.of(slice(other, other + 1))
            assert alone.others == 1
            assert torch.allclose(together[other], alone(x, asked[other]), atol=1e-12)
        same = members(5)[None].expand(4, -1, -1)
        assert torch.allclose(value.each(x, same).mean(0), value(x, members(5)), atol=1e-12)


def test_groups_and_single_precision() -> None:
    groups = torch.tensor([[True, False, True, False, False], [False, True, False, True, True]])
    net, x, background = network().float(), normals(3, 5).float(), normals(4, 5, seed=1).float()
    value = interventional(net, background, groups)
    assert value.players == 2
    plain = Interventional(as_model(net), background, groups)
    assert torch.allclose(value(x, members(2)), plain(x, members(2)), atol=1e-6)
    assert value(x, members(2)).dtype == torch.float64


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("begins", ["with a linear layer", "with another"])
def test_parts_lie_where_the_rows_do(device: str, begins: str) -> None:
    net = network().to(device)
    value = interventional(net if begins == "with a linear layer" else nn.Sequential(nn.Tanh(), net), normals(6, 5))
    assert isinstance(value, LinearFirst) == (begins == "with a linear layer")
    x = normals(2, 5, seed=1)
    found, exact = explain(value, x, 24, generator=torch.Generator().manual_seed(0)), explain_exactly(value, x)
    assert found.values.device == exact.values.device == x.device
    assert torch.allclose(found.prediction, exact.prediction, atol=1e-10)


def test_only_what_is_surely_a_linear_layer_is_shared() -> None:
    background = normals(4, 5)
    hooked = network()
    hooked[0].register_forward_hook(lambda module, inputs, output: 2 * output)
    whole = network()
    whole.register_forward_hook(lambda module, inputs, output: output.square())
    for predictor in (hooked, whole, nn.Sequential(), nn.Tanh(), lambda x: x.sum(1)):
        assert isinstance(interventional(predictor, background), Interventional)
    assert isinstance(interventional(nn.Linear(5, 1).double(), background), LinearFirst)


def test_a_last_layer_that_is_watched_is_asked_about_inputs() -> None:
    net, x, background = network(), normals(2, 5), normals(4, 5, seed=1)
    net[-1].register_forward_hook(lambda module, inputs, output: output.square())
    value = interventional(net, background)
    assert isinstance(value, LinearFirst)
    assert torch.allclose(value(x, members(5)), Interventional(as_model(net), background)(x, members(5)), atol=1e-12)


def test_what_others_see_is_not_written_over() -> None:
    torch.manual_seed(0)
    net, seen = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1)).double(), []
    net[2].register_forward_hook(lambda module, inputs, output: seen.append((output, output.clone())))
    interventional(net, normals(4, 5))(normals(2, 5, seed=1), members(5))
    assert seen
    assert all(torch.equal(now, then) for now, then in seen)
    assert not net[1].inplace


@pytest.mark.parametrize("training", [True, False])
def test_a_network_is_left_as_it_was(training: bool) -> None:
    net = network().train(training)
    explain(interventional(net, normals(4, 5)), normals(1, 5), 20)
    assert all(module.training == training for module in net.modules())


def test_wrong_input_gets_a_sentence() -> None:
    value = interventional(network(), normals(4, 5))
    with pytest.raises(ValueError, match="rows have 3 features"):
        value(normals(2, 3), members(5))
    with pytest.raises(ValueError, match="takes 5 features; the background has 4"):
        interventional(network(), normals(4, 4))
    with pytest.raises(ValueError, match="rows of features"):
        interventional(network(), normals(4, 5)[:0])
    with pytest.raises(ValueError, match="in one group"):
        interventional(network(), normals(4, 5), torch.ones(2, 5, dtype=torch.bool))
    broken = network()
    with torch.no_grad():
        next(broken.parameters()).fill_(float("nan"))
    with pytest.raises(ModelError, match="returned"):
        explain(interventional(broken, normals(4, 5)), normals(1, 5), 20)
