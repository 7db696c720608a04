"""The contract of flow transforms: every public module of flows with `inverse`, and every synthesizer."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.functional import jacobian

from parnassus import flows

from .checks import (
    Offences,
    check_equal,
    other_default_device,
    perturb,
    seeded,
    unchanged,
    unchanged_globals,
    without_shape_checks,
)
from .public_members import check_factories, has_any, public_classes


@dataclass(frozen=True)
class Transform:
    """How to build a transform, and the shape of an example; by default vectors of 4 values."""

    build: Callable[[], Any]
    shape: tuple[int, ...] = (4,)


def coupling_network(outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(2, 6), nn.Tanh(), nn.Linear(6, outputs))


def affine_coupling(kept: tuple[int, int] = (0, 2)) -> flows.AffineCoupling:
    return flows.AffineCoupling(coupling_network(4), kept, 4)


def linear_flow() -> flows.LinearFlow:
    return flows.LinearFlow(flows.PLUMatrix(flows.random_rotation(4)))


def continuous_transform() -> flows.ContinuousTransform:
    field = flows.TimeDependentField(nn.Sequential(nn.Linear(5, 4), nn.Tanh()))
    return flows.ContinuousTransform(field, tolerance=1e-8)


TRANSFORMS: dict[str, Transform] = {
    "flows.ActNorm": Transform(lambda: flows.ActNorm(4)),
    "flows.AffineCoupling": Transform(affine_coupling),
    "flows.AlternatingCouplings": Transform(
        lambda: flows.AlternatingCouplings([affine_coupling((0, 1)), affine_coupling((2, 3))])
    ),
    "flows.AutoregressiveTransform": Transform(
        lambda: flows.AutoregressiveTransform(flows.MADE(4, 2, hidden_sizes=(8,)), flows.AffineSynthesizer())
    ),
    "flows.BatchNormFlow": Transform(lambda: flows.BatchNormFlow(4)),
    "flows.Chain": Transform(lambda: flows.Chain([linear_flow(), affine_coupling()])),
    "flows.ContinuousTransform": Transform(continuous_transform),
    "flows.InverseTransform": Transform(lambda: flows.InverseTransform(linear_flow())),
    "flows.InvertibleConv1x1": Transform(
        lambda: flows.InvertibleConv1x1(flows.DenseMatrix(flows.random_rotation(3))), (3, 2, 2)
    ),
    "flows.InvertibleResidual": Transform(lambda: flows.InvertibleResidual(flows.contractive_mlp((4, 8, 4)))),
    "flows.LinearFlow": Transform(linear_flow),
    "flows.Logit": Transform(flows.Logit),
    "flows.MultiscaleTransform": Transform(
        lambda: flows.MultiscaleTransform((1, 4, 4), lambda channels: flows.glow_step(channels, width=4), num_scales=2),
        (16,),
    ),
    "flows.Permutation": Transform(lambda: flows.Permutation((2, 0, 3, 1))),
    "flows.Squeeze": Transform(flows.Squeeze, (4, 2, 2)),
    "flows.SynthesizerCoupling": Transform(
        lambda: flows.SynthesizerCoupling(
            coupling_network(2 * flows.SplineSynthesizer(3).size), (0, 2), 4, flows.SplineSynthesizer(3)
        )
    ),
}

SYNTHESIZERS: dict[str, Any] = {
    "flows.AffineSynthesizer": flows.AffineSynthesizer(),
    "flows.SplineSynthesizer": flows.SplineSynthesizer(3),
}


def test_every_transform_has_a_factory() -> None:
    invertible = {name: each for name, each in public_classes().items() if has_any(each, "inverse")}
    check_factories([name for name, each in invertible.items() if issubclass(each, nn.Module)], TRANSFORMS)
    check_factories([name for name, each in invertible.items() if not issubclass(each, nn.Module)], SYNTHESIZERS)


def built(case: Transform) -> Any:
    return perturb(seeded(case.build)).eval()


def batch(case: Transform) -> Tensor:
    """Values in (0, 1), where every transform is defined."""
    return 0.1 + 0.8 * torch.rand(3, *case.shape, generator=torch.Generator().manual_seed(0))


def test_the_inverse_and_the_log_determinant_are_those_of_the_map() -> None:
    offences = Offences()
    for name, case in TRANSFORMS.items():
        with offences.record(name, "float64"):
            transform, z = built(case).double(), batch(case).double()
            x, log_det = transform(z)
            back, inverse_log_det = transform.inverse(x)
            assert x.dtype == log_det.dtype == back.dtype == inverse_log_det.dtype == torch.float64, "another dtype"
            assert log_det.shape == inverse_log_det.shape == (3,), f"log det has shape {tuple(log_det.shape)}"
            torch.testing.assert_close(back, z, rtol=0, atol=1e-5)
            torch.testing.assert_close(inverse_log_det, -log_det, rtol=0, atol=1e-5)
            torch.testing.assert_close(log_det, exact_log_det(transform, z), rtol=0, atol=1e-6)
    offences.check()


def exact_log_det(transform: Any, z: Tensor) -> Tensor:
    """The log |det| of the Jacobian of each example by autograd."""
    size = z[0].numel()
    matrices = [jacobian(lambda each: transform(each[None])[0].flatten(), each).view(size, size) for each in z]
    return torch.stack([torch.linalg.slogdet(matrix).logabsdet for matrix in matrices])


def test_transforms_follow_the_device_of_the_input_and_change_nothing_else() -> None:
    offences = Offences()
    for name, case in TRANSFORMS.items():
        transform, z = built(case), batch(case)
        for direction, start in ((transform, z), (transform.inverse, transform(z)[0].detach())):
            with offences.record(name, "device"):
                with other_default_device():
                    results = direction(start)
                assert all(each.device.type == "cpu" for each in results), "not the device of the input"
            guard = unchanged_globals(torch_generator=True)
            with offences.record(name, "side effects"), without_shape_checks(), unchanged(start), guard:
                direction(start)
        with offences.record(name, "repr"):
            assert "tensor(" not in repr(transform)
    offences.check()


def test_gradients_reach_every_parameter_and_a_state_dict_restores_the_transform() -> None:
    offences = Offences()
    for name, case in TRANSFORMS.items():
        with offences.record(name, "gradients"):
            transform = built(case)
            x, log_det = transform(batch(case))
            if list(transform.parameters()):
                (x.square().sum() + log_det.square().sum()).backward()
            unreached = [key for key, p in transform.named_parameters() if p.grad is None or not bool(p.grad.any())]
            assert not unreached, f"no gradient at {', '.join(unreached)}"
        with offences.record(name, "state_dict"):
            first, second = built(case), perturb(case.build()).eval()
            second.load_state_dict(first.state_dict())
            check_equal(first(batch(case)), second(batch(case)))
    offences.check()


def test_synthesizers_are_increasing_and_have_their_inverse_and_derivative() -> None:
    offences = Offences()
    for name, synthesizer in SYNTHESIZERS.items():
        with offences.record(name, "inverse and derivative"):
            generator = torch.Generator().manual_seed(0)
            z = torch.randn(5, dtype=torch.float64, generator=generator).requires_grad_()
            h = torch.randn(5, synthesizer.size, dtype=torch.float64, generator=generator)
            with other_default_device():
                x, log_derivative = synthesizer(z, h)
                back, inverse_log_derivative = synthesizer.inverse(x, h)
            (derivative,) = torch.autograd.grad(x.sum(), z, retain_graph=True)
            torch.testing.assert_close(log_derivative.exp(), derivative)
            torch.testing.assert_close(back, z)
            torch.testing.assert_close(inverse_log_derivative, -log_derivative)
            assert len(repr(synthesizer)) < 100, "long repr"
    offences.check()
