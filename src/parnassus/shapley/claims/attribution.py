"""Claims about additive attributions of predictions (book secs. 17.0, 17.3)."""

import torch
from torch import Tensor, nn

from parnassus.atlas import Evidence, all_of, at_least, at_most, claim, close
from parnassus.shapley.attribution import explain, explain_exactly
from parnassus.shapley.game import members
from parnassus.shapley.masking import ConditionalGaussian, Interventional, mean_imputed
from parnassus.shapley.model import as_model
from parnassus.shapley.values import by_all_orders

FEATURES = 6


def normals(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def network(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(FEATURES, 16), nn.Tanh(), nn.Linear(16, 2)).double()


@claim("B17.0-1", "B17.3-1")
def parts_sum_to_the_prediction() -> Evidence:
    """At any budget base + Σ φ = f(x); a feature that is as in the background gets 0 (book sec. 17.3)."""
    model, x = as_model(network()), normals(5, FEATURES, seed=1)
    background = normals(20, FEATURES, seed=2)
    exact, few = (
        explain_exactly(Interventional(model, background), x),
        explain(Interventional(model, background), x, 20, generator=torch.Generator().manual_seed(0)),
    )
    same = background.clone()
    same[:, 3] = x[0, 3]
    missing = explain_exactly(Interventional(model, same), x[:1])
    return all_of(
        exact=close(exact.prediction, model(x), atol=1e-12),
        from_few=close(few.prediction, model(x), atol=1e-12),
        base=close(exact.base[0], model(background).mean(0), atol=1e-12),
        missing=close(missing.values[0, :, 3], torch.zeros(2).double(), atol=1e-12),
    )


@claim("B17.3-1")
def who_adds_more_gets_more() -> Evidence:
    """A feature that adds no less to any coalition of another model gets no less (book eq. 17.7)."""
    x, background = normals(1, FEATURES, seed=3).abs() + 0.1, torch.zeros(1, FEATURES, dtype=torch.float64)
    weights = normals(20, FEATURES, seed=4)
    gains = []
    for w in weights:
        less = as_model(lambda z, w=w: (z @ w).tanh() + z[:, 0] * z[:, 1])
        more = as_model(lambda z, w=w: (z @ w).tanh() + z[:, 0] * z[:, 1] + z[:, 2] * (1 + z[:, 4].square()))
        parts = [explain_exactly(Interventional(f, background), x).values[0, 0, 2] for f in (less, more)]
        gains.append(parts[1] - parts[0])
    return all_of(no_less=at_least(torch.stack(gains).min(), 0.0))


@claim("B17.3-3")
def a_linear_model_is_explained_by_hand() -> Evidence:
    """With w: φ_j = w_j (x_j − E x_j) if features are independent; conditional parts differ if not (book sec. 17.3)."""
    w = normals(FEATURES, seed=5)
    linear = as_model(lambda z: z @ w)
    mixing = torch.eye(FEATURES, dtype=torch.float64)
    mixing[0, 1] = 2.0  # the second follows the first
    background = normals(200, FEATURES, seed=6) @ mixing
    x = normals(4, FEATURES, seed=7) @ mixing
    by_hand = (w * (x - background.mean(0)))[:, None]
    apart, imputed, given = (
        explain_exactly(value, x)
        for value in (
            Interventional(linear, background),
            mean_imputed(linear, background),
            ConditionalGaussian(linear, background, draws=2),
        )
    )
    gap = (given.values - by_hand).abs().amax((0, 1))
    return all_of(
        interventional=close(apart.values, by_hand, atol=1e-10),
        imputed=close(imputed.values, by_hand, atol=1e-10),
        conditional_sums=close(given.prediction, linear(x), atol=1e-10),
        correlated_differ=at_least(gap[:2].min(), 0.3),
        others_hardly=at_most(gap[2:].max(), 0.25 * float(gap[:2].max())),
    )


@claim("B17.3-4")
def one_order_is_a_walk_and_their_mean_is_shap() -> Evidence:
    """From the base value each order walks to f(x); the mean over orders is SHAP (book fig. 17.3)."""
    value = Interventional(as_model(network(1)), normals(10, FEATURES, seed=8))
    x = normals(1, FEATURES, seed=9)
    worth = value(x, members(FEATURES))[0, 0]
    orders = by_all_orders(worth)
    return all_of(
        every_walk_ends=close(worth[0] + orders.added.sum(1), worth[-1].expand(len(orders.added)), atol=1e-12),
        mean_is_shap=close(orders.values, explain_exactly(value, x).values[0, 0], atol=1e-12),
        walks_differ=at_least(orders.added.std(0).max(), 0.01),
    )
