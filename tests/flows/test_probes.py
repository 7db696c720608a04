"""The bent plane is that of the trained flow, coupling by coupling."""

from collections.abc import Callable

import pytest
import torch

from parnassus.flows import Chain, Flow
from parnassus.flows.probes.bending import bend_the_plane
from parnassus.touch import Bars, Control, Numbers, Path, Whole, answer, controls_of
from parnassus.train.trained import Trained


@pytest.fixture(scope="module")
def trained(trained_run: Callable[..., Trained]) -> Trained:
    return trained_run("real_nvp_on_moons")


@pytest.fixture(scope="module")
def controls(trained: Trained) -> dict[str, Control]:
    return controls_of(bend_the_plane, trained)


def test_the_slider_ends_with_the_last_coupling(controls: dict[str, Control]) -> None:
    couplings = controls["couplings"]
    assert isinstance(couplings, Whole)
    assert couplings.high == 2  # of the smoke profile
    assert couplings.start(99) == 2


def test_the_point_goes_the_way_of_the_flow(trained: Trained, controls: dict[str, Control]) -> None:
    flow = trained.model
    assert isinstance(flow, Flow)
    assert isinstance(flow.transform, Chain)
    picture, numbers, bars = answer(bend_the_plane, trained, controls, {"couplings": 2, "start": [0.5, -1.0]})
    assert isinstance(picture, Path)
    assert isinstance(numbers, Numbers)
    assert isinstance(bars, Bars)
    z = torch.tensor([[0.5, -1.0]])
    with torch.no_grad():
        states = torch.cat(list(flow.transform.path(z)))
        here = flow.log_prob(states[-1:])
    torch.testing.assert_close(picture.places["the point, coupling by coupling"], states)
    assert numbers.values["log p here"] == pytest.approx(float(here), abs=1e-5)
    assert float(bars.values.sum()) == pytest.approx(float(flow.transform(z)[1].detach()), abs=1e-5)


def test_without_couplings_the_grid_is_straight_and_the_density_normal(
    trained: Trained, controls: dict[str, Control]
) -> None:
    picture, numbers = answer(bend_the_plane, trained, controls, {"couplings": 0})
    assert isinstance(picture, Path)
    assert isinstance(numbers, Numbers)
    assert numbers.values["log p here"] == numbers.values["log p of the noise"]
    assert len(picture.threads) == 22
    across, up = picture.threads[0], picture.threads[-1]
    assert len(across[:, 1].unique()) == 1
    assert len(up[:, 0].unique()) == 1
    row, column = divmod(int(picture.levels.argmin()), picture.levels.shape[1])
    assert abs(float(picture.up[row])) < 0.06
    assert abs(float(picture.across[column])) < 0.06
