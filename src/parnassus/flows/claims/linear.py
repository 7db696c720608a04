"""Claims about linear flows: a Jacobian as convenient as any, and all Gaussians (book sec. 13.1)."""

from math import log, pi

import torch
from torch import Tensor, nn
from torch.func import jacrev

from parnassus.atlas import Correction, Evidence, all_of, at_most, claim, close, erratum, raises, rate
from parnassus.flows.flow import Flow, GaussianBase
from parnassus.flows.linear import LinearFlow
from parnassus.flows.matrices import (
    DenseMatrix,
    HouseholderMatrix,
    InvertibleMatrix,
    PLUMatrix,
    TriangularMatrix,
    random_rotation,
)
from parnassus.flows.one_by_one_convolution import OneByOneConvolution

FEATURES = 6


def start(features: int = FEATURES) -> Tensor:
    return torch.randn(features, features, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def matrices() -> dict[str, nn.Module]:
    """The four forms, with numbers that are nothing special."""
    lower = start().tril(-1) + start().diagonal().exp().diag()
    return {
        "dense": DenseMatrix(start()),
        "triangular": TriangularMatrix(lower),
        "plu": PLUMatrix(start()),
        "householder": HouseholderMatrix(start()),
    }


def jacobians(flow: nn.Module, places: Tensor) -> Tensor:
    """∂x/∂z at each place, by autograd."""
    return torch.stack([jacrev(lambda point: flow(point[None])[0][0])(z) for z in places]).detach()


@claim("B13.1-12")
def the_jacobian_is_the_same_everywhere() -> Evidence:
    """∂x/∂z = W at every z, and each form of W knows log |det W| and W⁻¹ (book sec. 13.1)."""
    torch.manual_seed(0)
    z = 3 * torch.randn(8, FEATURES, dtype=torch.float64)
    found: dict[str, Evidence] = {}
    for name, matrix in matrices().items():
        flow = LinearFlow(matrix).double()
        each, (x, log_det) = jacobians(flow, z), flow(z)
        found[f"{name}_constant"] = close(each, each[:1].expand_as(each), atol=1e-12)
        found[f"{name}_log_det"] = close(log_det.detach(), torch.linalg.slogdet(each).logabsdet, atol=1e-12)
        found[f"{name}_inverse"] = close(flow.inverse(x)[0].detach(), z, atol=1e-10)
    return all_of(**found)


@erratum(
    "B13.1-12",
    printed="flows other than autoregressive ones usually have no convenient Jacobian",
    right="that of a linear flow is constant, and in PLU form its log-determinant reads D numbers",
)
def a_linear_flow_has_a_convenient_jacobian() -> Correction:
    """As W = PLU, log |det J| = Σ_i log |u_ii| needs D numbers where a matrix has D² (book sec. 13.1)."""
    sizes = torch.tensor([4, 8, 16, 32, 64])
    read = torch.tensor([_numbers_read(PLUMatrix(start(int(size)))) for size in sizes])
    whole = torch.tensor([_numbers_read(DenseMatrix(start(int(size)))) for size in sizes])
    matrix = PLUMatrix(start(64))
    return Correction(
        printed=rate(sizes, read, 2.0, atol=0.1),
        corrected=all_of(
            plu=rate(sizes, read, 1.0, atol=1e-9),
            dense=rate(sizes, whole, 2.0, atol=1e-9),
            value=close(matrix.log_abs_det().detach(), torch.linalg.slogdet(start(64)).logabsdet, rtol=1e-12),
        ),
    )


@claim("B13.1-12")
def reflections_change_no_volume() -> Evidence:
    """A product of reflections is orthogonal, WᵀW = I, so that log |det W| = 0 and lengths stay (book sec. 13.1)."""
    matrix = HouseholderMatrix(start()[:4])
    z = start()
    w = matrix.times(torch.eye(FEATURES, dtype=torch.float64)).detach()
    return all_of(
        orthogonal=close(w @ w.mT, torch.eye(FEATURES, dtype=torch.float64), atol=1e-12),
        lengths=close(matrix.times(z).norm(dim=1).detach(), z.norm(dim=1), rtol=1e-12),
        even_number_of_mirrors=close(torch.linalg.det(w), 1.0, atol=1e-12),
    )


@claim("B13.1-12")
def the_most_likely_linear_flow_is_the_gaussian_of_the_data() -> Evidence:
    """At b = mean, W Wᵀ = covariance the NLL is least: ½ D log 2πe + ½ log det Σ̂, with no slope (book eq. 13.9)."""
    torch.manual_seed(1)
    x = torch.randn(500, FEATURES, dtype=torch.float64) @ start() + 2
    covariance = torch.cov(x.mT, correction=0)
    linear = LinearFlow(TriangularMatrix(torch.linalg.cholesky(covariance))).double()
    linear.shift.data.copy_(x.mean(0))
    flow = Flow(linear, GaussianBase((FEATURES,)).double())
    loss = flow.loss(x)
    loss.backward()
    slopes = torch.cat([p.grad.flatten() for p in flow.parameters() if p.grad is not None])
    least = (FEATURES * (log(2 * pi) + 1) + torch.logdet(covariance)) / 2
    return all_of(value=close(loss.detach(), least, rtol=1e-12), slope=at_most(slopes.abs(), 1e-12))


@claim("B13.1-12")
def a_one_by_one_convolution_counts_every_pixel() -> Evidence:
    """One matrix at each of h · w pixels: log |det J| = h w log |det W| (Kingma and Dhariwal 2018)."""
    flow = OneByOneConvolution(PLUMatrix(start(3)))
    z = torch.linspace(-1, 1, 3 * 4 * 2, dtype=torch.float64).reshape(3, 4, 2)
    found = jacrev(lambda image: flow(image[None])[0].flatten())(z).reshape(24, 24).detach()
    truth = torch.linalg.slogdet(start(3)).logabsdet
    return all_of(
        whole=close(torch.linalg.slogdet(found).logabsdet, 4 * 2 * truth, rtol=1e-10),
        said=close(flow(z[None])[1][0].detach(), 4 * 2 * truth, rtol=1e-10),
    )


@claim("B13.1-12")
def a_singular_matrix_is_refused() -> Evidence:
    """A matrix that loses a direction is no flow; a rotation is one with log |det W| = 0 (book sec. 13.1)."""
    flat = start().clone()
    flat[0] = flat[1] + flat[2]
    turned = random_rotation(FEATURES, generator=torch.Generator().manual_seed(0)).double()
    return all_of(
        dense=raises(ValueError, lambda: DenseMatrix(flat)),
        plu=raises(ValueError, lambda: PLUMatrix(flat)),
        rotation=close(DenseMatrix(turned).log_abs_det().detach(), 0.0, atol=1e-6),
    )


def _numbers_read(matrix: nn.Module) -> int:
    """On how many parameters log |det W| depends, by its gradient."""
    assert isinstance(matrix, InvertibleMatrix)
    gradients = torch.autograd.grad(matrix.log_abs_det(), list(matrix.parameters()), allow_unused=True)
    return sum(int(gradient.count_nonzero()) for gradient in gradients if gradient is not None)
