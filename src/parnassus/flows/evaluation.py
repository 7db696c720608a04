"""Evaluation of flows: held-out likelihood, divergence from a known density, round-trip error."""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor

from parnassus.flows.flow import Flow


def nll_and_divergence(
    flow: Flow, x: Float[Tensor, "batch *event"], true_log_prob: Callable[[Tensor], Tensor] | None
) -> dict[str, float]:
    """The mean of −log p(x) as `test_nll` and, if the true density q is known, KL(q ‖ p) as `divergence`."""
    nll = -float(flow.log_prob(x).mean())
    if true_log_prob is None:
        return {"test_nll": nll}
    return {"test_nll": nll, "divergence": nll + float(true_log_prob(x).mean())}


def round_trip_error(flow: Flow, x: Float[Tensor, "batch *event"]) -> float:
    """The largest absolute difference between T(T⁻¹(x)) and x."""
    z, _ = flow.transform.inverse(x)
    return float((flow.transform(z)[0] - x).abs().max())
