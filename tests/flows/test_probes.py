"""The probe of coupling layers agrees with the trained flow."""

from collections.abc import Callable

import pytest
import torch

from parnassus.flows import Chain, Flow
from parnassus.flows.probes.coupling_layers import deform_plane
from parnassus.train.trained import Trained
from parnassus.widgets import Bars, Control, IntSlider, Numbers, Trajectories, evaluate_probe, read_controls


@pytest.fixture(scope="module")
def trained(trained_run: Callable[..., Trained]) -> Trained:
    return trained_run("real_nvp_on_moons")


@pytest.fixture(scope="module")
def controls(trained: Trained) -> dict[str, Control]:
    return read_controls(deform_plane, trained)


def test_the_slider_has_the_number_of_couplings(controls: dict[str, Control]) -> None:
    couplings = controls["couplings"]
    assert isinstance(couplings, IntSlider)
    assert couplings.high == 2  # of the smoke profile
    assert couplings.initial_value(99) == 2


def test_the_trajectory_and_the_density_are_those_of_the_flow(trained: Trained, controls: dict[str, Control]) -> None:
    flow = trained.model
    assert isinstance(flow, Flow)
    assert isinstance(flow.transform, Chain)
    view, numbers, bars = evaluate_probe(deform_plane, trained, controls, {"couplings": 2, "start": [0.5, -1.0]})
    assert isinstance(view, Trajectories)
    assert isinstance(numbers, Numbers)
    assert isinstance(bars, Bars)
    z = torch.tensor([[0.5, -1.0]])
    with torch.no_grad():
        states = torch.cat(list(flow.transform.path(z)))
        log_prob = flow.log_prob(states[-1:])
    torch.testing.assert_close(view.paths["z after each coupling"], states)
    assert numbers.values["log p of the transformed point"] == pytest.approx(float(log_prob), abs=1e-5)
    assert float(bars.values.sum()) == pytest.approx(float(flow.transform(z)[1].detach()), abs=1e-5)


def test_without_couplings_the_grid_is_regular_and_the_density_normal(
    trained: Trained, controls: dict[str, Control]
) -> None:
    view, numbers = evaluate_probe(deform_plane, trained, controls, {"couplings": 0})
    assert isinstance(view, Trajectories)
    assert isinstance(numbers, Numbers)
    assert numbers.values["log p of the transformed point"] == numbers.values["log p of z"]
    assert len(view.thin_lines) == 22
    horizontal, vertical = view.thin_lines[0], view.thin_lines[-1]
    assert len(horizontal[:, 1].unique()) == 1
    assert len(vertical[:, 0].unique()) == 1
    row, column = divmod(int(view.levels.argmin()), view.levels.shape[1])
    assert abs(float(view.y[row])) < 0.06
    assert abs(float(view.x[column])) < 0.06
