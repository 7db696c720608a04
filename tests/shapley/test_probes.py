"""What can be touched tells the truth: the book's game, parts that sum up, whiskers that hold what is exact."""

import pytest
import torch

from parnassus.shapley.probes.converging import WAYS, estimate_converging
from parnassus.shapley.probes.one_row import why_this_row
from parnassus.shapley.probes.three_players import share_among_three
from parnassus.touch import Bars, Curves, Numbers, answer, controls_of


def converged(**values: object) -> tuple[Bars, Curves, Numbers]:
    bars, errors, numbers = answer(estimate_converging, None, controls_of(estimate_converging, None), values)
    assert isinstance(bars, Bars)
    assert isinstance(errors, Curves)
    assert isinstance(numbers, Numbers)
    return bars, errors, numbers


def test_the_books_game() -> None:
    parts, *_ = answer(share_among_three, None, controls_of(share_among_three, None), {})
    assert isinstance(parts, Bars)
    assert parts.values.tolist() == pytest.approx([970 / 6, 970 / 6, 1060 / 6])


@pytest.mark.parametrize("way", range(len(WAYS)), ids=list(WAYS))
def test_whiskers_hold_what_is_exact(way: int) -> None:
    held = []
    for seed in range(12):
        bars, _, numbers = converged(estimator=way, seed=seed, budget=40, features=8)
        assert bars.errors is not None
        assert bars.truth is not None
        held.append((bars.values - bars.truth).abs() <= bars.errors)
        assert numbers.values["parts sum to the whole but for"] == pytest.approx(0.0, abs=1e-9)
    assert 0.88 <= float(torch.stack(held).double().mean()) <= 1.0


def test_nothing_is_left_to_chance_once_all_are_asked() -> None:
    _, errors, numbers = converged(estimator=list(WAYS).index("Kernel SHAP"), budget=3_000, features=6)
    assert numbers.values["missed, root mean square"] == pytest.approx(0.0, abs=1e-12)
    assert numbers.values["said, root mean square"] == 0.0
    missed = errors.lines["missed"][1]
    assert missed[-1] < missed[0]


@pytest.mark.parametrize("moved", [{}, {"index": 8.0, "sugar": -12.0}], ids=["as measured", "moved"])
def test_parts_and_base_sum_to_the_prediction(moved: dict[str, float]) -> None:
    bars, before, _, numbers = answer(why_this_row, None, controls_of(why_this_row, None), {"patient": 7, **moved})
    assert isinstance(bars, Bars)
    assert isinstance(before, Bars)
    assert isinstance(numbers, Numbers)
    told = {name: float(number) for name, number in numbers.values.items()}
    whole = told["base, the mean over the background"] + told["sum of the parts"]
    assert whole == pytest.approx(told["prediction"], abs=1e-9)
    assert (told["prediction"] != told["prediction before anything was moved"]) == bool(moved)
    assert torch.equal(bars.values, before.values) == (not moved)
