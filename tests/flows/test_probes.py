"""The probe of coupling layers agrees with the trained flow."""

from collections.abc import Callable

import pytest
import torch

from parnassus.flows import Chain, Flow
from parnassus.flows.probes.coupling_layers import deform_plane
from parnassus.train.trained import TrainedRun
from parnassus.widgets import Bars, Control, IntSlider, Numbers, Trajectories, evaluate_probe, read_controls


@pytest.fixture(scope="module")
def trained(trained_run: Callable[..., TrainedRun]) -> TrainedRun:
    return trained_run("real_nvp_on_moons")


@pytest.fixture(scope="module")
def controls(trained: TrainedRun) -> dict[str, Control]:
    return read_controls(deform_plane, trained)


def test_slider_range_is_the_number_of_couplings(controls: dict[str, Control]) -> None:
    couplings = controls["couplings"]
    assert isinstance(couplings, IntSlider)
    assert couplings.high == 2  # of the smoke profile
    assert couplings.initial_value(99) == 2


def test_trajectory_and_density_match_the_flow(trained: TrainedRun, controls: dict[str, Control]) -> None:
    flow = trained.model
    assert isinstance(flow, Flow)
    assert isinstance(flow.transform, Chain)
    plot, numbers, bars = evaluate_probe(deform_plane, trained, controls, {"couplings": 2, "start": [0.5, -1.0]})
    assert isinstance(plot, Trajectories)
    assert isinstance(numbers, Numbers)
    assert isinstance(bars, Bars)
    z = torch.tensor([[0.5, -1.0]])
    with torch.no_grad():
        states = torch.cat(list(flow.transform.path(z)))
        log_prob = flow.log_prob(states[-1:])
    torch.testing.assert_close(plot.paths["z after each coupling"], states)
    assert numbers.values["log p of the transformed point"] == pytest.approx(float(log_prob), abs=1e-5)
    assert float(bars.values.sum()) == pytest.approx(float(flow.transform(z)[1].detach()), abs=1e-5)


def test_grid_is_regular_and_density_is_normal_without_couplings(
    trained: TrainedRun, controls: dict[str, Control]
) -> None:
    plot, numbers = evaluate_probe(deform_plane, trained, controls, {"couplings": 0})
    assert isinstance(plot, Trajectories)
    assert isinstance(numbers, Numbers)
    assert numbers.values["log p of the transformed point"] == numbers.values["log p of z"]
    assert len(plot.thin_lines) == 22
    horizontal, vertical = plot.thin_lines[0], plot.thin_lines[-1]
    assert len(horizontal[:, 1].unique()) == 1
    assert len(vertical[:, 0].unique()) == 1
    row, column = divmod(int(plot.levels.argmin()), plot.levels.shape[1])
    assert abs(float(plot.y[row])) < 0.06
    assert abs(float(plot.x[column])) < 0.06
