"""Claims about the density of a linear flow with a shift (book sec. 13.1)."""

import torch
from torch.distributions import MultivariateNormal

from parnassus.atlas import Evidence, all_of, claim, close
from parnassus.flows.flow import Flow, GaussianBase
from parnassus.flows.linear.invertible_matrices import TriangularMatrix
from parnassus.flows.linear.linear_flow import LinearFlow


@claim("B13.1-12")
def a_linear_flow_with_a_shift_is_a_gaussian() -> Evidence:
    """The map x = W z + b of z ~ N(0, I) has the density N(b, W Wᵀ) (book sec. 13.1)."""
    torch.manual_seed(0)
    W = torch.tensor([[1.5, 0.0, 0.0], [-0.7, 0.6, 0.0], [0.2, 1.1, 2.0]], dtype=torch.float64)
    b = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    linear = LinearFlow(TriangularMatrix(W)).double()
    with torch.no_grad():
        linear.shift.copy_(b)
        x = torch.randn(5, 3, dtype=torch.float64)
        log_prob = Flow(linear, GaussianBase((3,)).double()).log_prob(x)
        back, _ = linear(linear.inverse(x)[0])
    return all_of(
        density=close(log_prob, MultivariateNormal(b, W @ W.mT).log_prob(x), rtol=1e-10),
        forward=close(linear(torch.zeros(1, 3, dtype=torch.float64))[0][0], b, rtol=1e-12),
        inverse=close(back, x, rtol=1e-10),
    )
