"""Claims about the Helmholtz machine: effects of the wake and the sleep phase (book sec. 11.1)."""

import torch
from torch import Tensor

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal
from parnassus.latent.energy_based.helmholtz_machine import HelmholtzMachine
from parnassus.layers.dropout import all_masks


def random_machine(*sizes: int, scale: float = 1.0) -> HelmholtzMachine:
    torch.manual_seed(0)
    model = HelmholtzMachine(sizes).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=scale)
    return model


def posterior(model: HelmholtzMachine, x: Tensor) -> Tensor:
    """p(z|x) for every hidden state of a machine with one hidden layer (states, rows)."""
    z = all_masks(model.sizes[1]).to(x)[:, None].expand(-1, len(x), -1)
    return model.log_joint([x.expand(len(z), *x.shape), z]).softmax(0)


@claim("B11.1-4")
def the_bound_is_the_evidence_minus_a_kl_divergence() -> Evidence:
    """The gap log p(x) − Σ_z q log(p(x,z)/q) equals KL(q(z|x) ‖ p(z|x)) ≥ 0 (book eq. 6.12)."""
    model = random_machine(4, 3)
    x = all_masks(4).double()
    z = all_masks(3).double()[:, None].expand(-1, len(x), -1)
    q = model.log_recognition([x.expand(len(z), *x.shape), z]).exp()
    gap = (q * (q / posterior(model, x)).log()).sum(0)
    return all_of(
        gap=close(model.log_prob(x) - model.exact_bound(x), gap, atol=1e-12), positive=greater_equal(gap, 0.0)
    )


@claim("B11.1-4")
def the_wake_phase_follows_the_gradient_of_the_bound() -> Evidence:
    """The wake phase estimates the exact bound's gradient for the generative weights (book sec. 11.1)."""
    model = random_machine(4, 3)
    x = all_masks(4).double()
    weights = [*model.down.parameters(), model.top_bias]
    exact = torch.autograd.grad(-model.exact_bound(x).mean(), weights)
    estimate = torch.autograd.grad(model.wake_loss(x.repeat(3_000, 1)), weights)
    return all_of(
        **{
            name: close(mean, expected, atol=0.02)
            for name, mean, expected in zip(("weights", "biases", "top"), estimate, exact, strict=True)
        }
    )


@claim("B11.1-4")
def the_sleep_phase_learns_the_posterior_of_generated_samples() -> Evidence:
    """The sleep phase reduces KL(p(z|x) ‖ q(z|x)) on samples; here the bound improves too (book sec. 11.1)."""
    model = random_machine(4, 2)
    x = all_masks(4).double()

    def divergence() -> Tensor:
        """E_p(x) KL(p(z|x) ‖ q(z|x)) by enumeration of all states."""
        z = all_masks(2).double()[:, None].expand(-1, len(x), -1)
        log_q = model.log_recognition([x.expand(len(z), *x.shape), z]).detach()
        p = posterior(model, x)
        return ((p * (p.log() - log_q)).sum(0) * model.log_prob(x).exp()).sum().detach()

    initial, gap = divergence(), (model.log_prob(x) - model.exact_bound(x)).mean().detach()
    evidence = model.log_prob(x).detach()
    optimizer = torch.optim.Adam(model.up.parameters(), lr=0.02)
    for _ in range(250):
        optimizer.zero_grad()
        model.sleep_loss(256).backward()
        optimizer.step()
    return all_of(
        divergence_decreases=less_equal(divergence(), 0.1 * initial),
        bound_tightens=less_equal((model.log_prob(x) - model.exact_bound(x)).mean(), 0.5 * gap),
        evidence_is_unchanged=close(model.log_prob(x), evidence, atol=1e-12),
    )


@claim("B11.1-4")
def wake_sleep_increases_the_evidence() -> Evidence:
    """Both phases together increase the exact evidence of four patterns nearly to log ¼ (book sec. 11.1)."""
    model = random_machine(6, 3, scale=0.3)
    x = all_masks(2).double().repeat_interleave(3, 1)
    initial = model.log_prob(x).mean().detach()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(500):
        optimizer.zero_grad()
        model.loss(x.repeat(8, 1)).backward()
        optimizer.step()
    best = -torch.tensor(4.0, dtype=torch.float64).log()
    return all_of(
        evidence=greater_equal(model.log_prob(x).mean(), initial + 0.8 * (best - initial)),
        bound=greater_equal(model.exact_bound(x).mean(), initial),
        upper_bound=less_equal(model.log_prob(x).mean(), best),
    )
