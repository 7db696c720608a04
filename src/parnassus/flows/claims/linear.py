"""Claims about linear flows: constant Jacobian, cheap determinants, maximum likelihood (book sec. 13.1)."""

from math import log, pi

import torch
from torch import Tensor, nn
from torch.func import jacrev

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, less_equal, raises, rate
from parnassus.flows.flow import Flow, GaussianBase
from parnassus.flows.linear.invertible_1x1_convolution import InvertibleConv1x1
from parnassus.flows.linear.invertible_matrices import (
    DenseMatrix,
    HouseholderMatrix,
    InvertibleMatrix,
    PLUMatrix,
    TriangularMatrix,
    random_rotation,
)
from parnassus.flows.linear.linear_flow import LinearFlow
from parnassus.probability import standard_normal

FEATURES = 6


def random_matrix(features: int = FEATURES) -> Tensor:
    return standard_normal(features, features)


def build_matrices() -> dict[str, nn.Module]:
    """The four parametrisations with random values."""
    lower = random_matrix().tril(-1) + random_matrix().diagonal().exp().diag()
    return {
        "dense": DenseMatrix(random_matrix()),
        "triangular": TriangularMatrix(lower),
        "plu": PLUMatrix(random_matrix()),
        "householder": HouseholderMatrix(random_matrix()),
    }


def jacobians(flow: nn.Module, points: Tensor) -> Tensor:
    """∂x/∂z at each point, by autograd."""
    return torch.stack([jacrev(lambda point: flow(point[None])[0][0])(z) for z in points]).detach()


@claim("B13.1-12")
def the_jacobian_is_constant() -> Evidence:
    """∂x/∂z = W at every z, and log |det W| and W⁻¹ are exact for each parametrisation (book sec. 13.1)."""
    torch.manual_seed(0)
    z = 3 * torch.randn(8, FEATURES, dtype=torch.float64)
    evidence: dict[str, Evidence] = {}
    for name, matrix in build_matrices().items():
        flow = LinearFlow(matrix).double()
        matrices, (x, log_det) = jacobians(flow, z), flow(z)
        evidence[f"{name}_constant"] = close(matrices, matrices[:1].expand_as(matrices), atol=1e-12)
        evidence[f"{name}_log_det"] = close(log_det.detach(), torch.linalg.slogdet(matrices).logabsdet, atol=1e-12)
        evidence[f"{name}_inverse"] = close(flow.inverse(x)[0].detach(), z, atol=1e-10)
    return all_of(**evidence)


@erratum(
    "B13.1-12",
    printed="flows other than autoregressive ones usually have no convenient Jacobian",
    right="that of a linear flow is constant, and in PLU form its log-determinant is a sum of D terms",
)
def a_linear_flow_has_a_convenient_jacobian() -> Correction:
    """For W = PLU, log |det J| = Σ_i log |u_ii| depends on D parameters instead of D² (book sec. 13.1)."""
    sizes = torch.tensor([4, 8, 16, 32, 64])
    plu_counts = torch.tensor([_count_parameters_used(PLUMatrix(random_matrix(int(size)))) for size in sizes])
    dense_counts = torch.tensor([_count_parameters_used(DenseMatrix(random_matrix(int(size)))) for size in sizes])
    matrix = PLUMatrix(random_matrix(64))
    return Correction(
        printed=rate(sizes, plu_counts, 2.0, atol=0.1),
        corrected=all_of(
            plu=rate(sizes, plu_counts, 1.0, atol=1e-9),
            dense=rate(sizes, dense_counts, 2.0, atol=1e-9),
            value=close(matrix.log_abs_det().detach(), torch.linalg.slogdet(random_matrix(64)).logabsdet, rtol=1e-12),
        ),
    )


@claim("B13.1-12")
def householder_products_preserve_volume() -> Evidence:
    """A product of reflections is orthogonal, WᵀW = I: log |det W| = 0 and norms are preserved (book sec. 13.1)."""
    matrix = HouseholderMatrix(random_matrix()[:4])
    z = random_matrix()
    w = matrix.multiply(torch.eye(FEATURES, dtype=torch.float64)).detach()
    return all_of(
        orthogonal=close(w @ w.mT, torch.eye(FEATURES, dtype=torch.float64), atol=1e-12),
        norms=close(matrix.multiply(z).norm(dim=1).detach(), z.norm(dim=1), rtol=1e-12),
        determinant_of_an_even_number=close(torch.linalg.det(w), 1.0, atol=1e-12),
    )


@claim("B13.1-12")
def the_maximum_likelihood_linear_flow_is_the_fitted_gaussian() -> Evidence:
    """At b = mean, W Wᵀ = covariance the NLL is ½ D log 2πe + ½ log det Σ̂, with gradient zero (book eq. 13.9)."""
    torch.manual_seed(1)
    x = torch.randn(500, FEATURES, dtype=torch.float64) @ random_matrix() + 2
    covariance = torch.cov(x.mT, correction=0)
    linear = LinearFlow(TriangularMatrix(torch.linalg.cholesky(covariance))).double()
    linear.shift.data.copy_(x.mean(0))
    flow = Flow(linear, GaussianBase((FEATURES,)).double())
    loss = flow.loss(x)
    loss.backward()
    gradient = torch.cat([p.grad.flatten() for p in flow.parameters() if p.grad is not None])
    min_nll = (FEATURES * (log(2 * pi) + 1) + torch.logdet(covariance)) / 2
    return all_of(value=close(loss.detach(), min_nll, rtol=1e-12), gradient=less_equal(gradient.abs(), 1e-12))


@claim("B13.1-12")
def the_log_determinant_of_a_1x1_convolution_counts_every_pixel() -> Evidence:
    """One matrix at each of h · w pixels: log |det J| = h w log |det W| (Kingma and Dhariwal 2018)."""
    flow = InvertibleConv1x1(PLUMatrix(random_matrix(3)))
    z = torch.linspace(-1, 1, 3 * 4 * 2, dtype=torch.float64).reshape(3, 4, 2)
    jacobian = jacrev(lambda image: flow(image[None])[0].flatten())(z).reshape(24, 24).detach()
    truth = torch.linalg.slogdet(random_matrix(3)).logabsdet
    return all_of(
        autograd=close(torch.linalg.slogdet(jacobian).logabsdet, 4 * 2 * truth, rtol=1e-10),
        reported=close(flow(z[None])[1][0].detach(), 4 * 2 * truth, rtol=1e-10),
    )


@claim("B13.1-12")
def a_singular_matrix_is_rejected() -> Evidence:
    """A singular matrix raises an error; a rotation has log |det W| = 0 (book sec. 13.1)."""
    singular = random_matrix().clone()
    singular[0] = singular[1] + singular[2]
    rotation = random_rotation(FEATURES, generator=torch.Generator().manual_seed(0)).double()
    return all_of(
        dense=raises(ValueError, lambda: DenseMatrix(singular)),
        plu=raises(ValueError, lambda: PLUMatrix(singular)),
        rotation=close(DenseMatrix(rotation).log_abs_det().detach(), 0.0, atol=1e-6),
    )


def _count_parameters_used(matrix: nn.Module) -> int:
    """The number of parameters on which log |det W| depends, by its gradient."""
    assert isinstance(matrix, InvertibleMatrix)
    gradients = torch.autograd.grad(matrix.log_abs_det(), list(matrix.parameters()), allow_unused=True)
    return sum(int(gradient.count_nonzero()) for gradient in gradients if gradient is not None)
