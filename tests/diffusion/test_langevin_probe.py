"""The probe of Langevin dynamics runs the algorithms of the package."""

import pytest
import torch

from parnassus.diffusion.probes.langevin import CHAINS, DENSITIES, langevin_dynamics
from parnassus.diffusion.samplers.langevin import langevin_path
from parnassus.widgets import Curves, Numbers, Trajectories, evaluate_probe, read_controls


def run_probe(**values: object) -> tuple[Trajectories, Curves, Numbers]:
    path, fractions, numbers = evaluate_probe(langevin_dynamics, None, read_controls(langevin_dynamics, None), values)
    assert isinstance(path, Trajectories)
    assert isinstance(fractions, Curves)
    assert isinstance(numbers, Numbers)
    return path, fractions, numbers


def test_unadjusted_chains_match_langevin_path() -> None:
    path, _, _ = run_probe(start=[1.0, 1.0], step=0.1, steps=7)
    torch.manual_seed(0)
    start = torch.tensor([[1.0, 1.0]]).expand(CHAINS, 2)
    density = next(iter(DENSITIES.values()))
    states = torch.stack(list(langevin_path(density.score, start, step=0.1, steps=7)))
    torch.testing.assert_close(path.paths["chain 1"], states[:, 0])
    assert len(path.paths["chain 1"]) == 8


def test_chains_at_temperature_0_end_at_the_same_mode() -> None:
    path, _, numbers = run_probe(temperature=0, start=[1.0, 1.5], step=0.1, steps=200)
    ends = torch.stack([states[-1] for states in path.paths.values()])
    assert float((ends - ends[0]).abs().max()) == 0
    torch.testing.assert_close(ends[0], torch.tensor([2.0, 2.0]), atol=1e-3, rtol=0)
    assert numbers.values["E‖x − E x‖² of the chains"] == pytest.approx(0, abs=1e-9)


def test_large_steps_diverge_without_metropolis_adjustment() -> None:
    unadjusted, adjusted = (run_probe(density=2, algorithm=index, step=2.0, steps=100)[2].values for index in (0, 1))
    assert isinstance(unadjusted["chains outside the plane"], float)
    assert unadjusted["chains outside the plane"] > 100
    assert adjusted["chains outside the plane"] == 0


def test_annealing_reproduces_the_weights_of_distant_modes() -> None:
    """The chains start next to the mode of smaller weight."""
    fractions = [
        run_probe(algorithm=index, start=[-1.0, -1.0], step=0.05, steps=200)[1].lines["fraction of chains"][1][-1]
        for index in (0, 2)
    ]
    assert fractions[0] < 0.1
    assert fractions[1] > 0.6


def test_variance_under_p_matches_samples() -> None:
    _, _, numbers = run_probe(density=1)
    torch.manual_seed(0)
    x, _ = list(DENSITIES.values())[1].sample(200_000)
    expected = float((x - x.mean(0)).square().sum(1).mean())
    assert numbers.values["E‖x − E x‖² under p"] == pytest.approx(expected, rel=0.02)


def test_probe_keeps_the_global_random_state() -> None:
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    run_probe()
    assert torch.equal(torch.rand(1), expected)


def test_non_positive_step_size_raises_value_error() -> None:
    with pytest.raises(ValueError, match="step size c must be between"):
        run_probe(step=0)
