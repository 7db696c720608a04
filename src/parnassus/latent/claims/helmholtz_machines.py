"""Claims about the Helmholtz machine: what waking and sleeping each improve (book sec. 11.1)."""

import torch
from torch import Tensor

from parnassus.atlas import Evidence, all_of, at_least, at_most, claim, close
from parnassus.latent.helmholtz import HelmholtzMachine
from parnassus.layers.dropout import every_mask


def machine(*sizes: int, scale: float = 1.0) -> HelmholtzMachine:
    torch.manual_seed(0)
    model = HelmholtzMachine(sizes).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=scale)
    return model


def posterior(model: HelmholtzMachine, x: Tensor) -> Tensor:
    """p(z|x) for every hidden state of a machine with one hidden layer (states, rows)."""
    z = every_mask(model.sizes[1]).to(x)[:, None].expand(-1, len(x), -1)
    return model.log_joint([x.expand(len(z), *x.shape), z]).softmax(0)


@claim("B11.1-4")
def the_bound_is_the_evidence_less_a_divergence() -> Evidence:
    """Log p(x) − Σ_z q log(p(x,z)/q) = KL(q(z|x) ‖ p(z|x)) ≥ 0 in every machine (book eq. 6.12)."""
    model = machine(4, 3)
    x = every_mask(4).double()
    z = every_mask(3).double()[:, None].expand(-1, len(x), -1)
    q = model.log_recognition([x.expand(len(z), *x.shape), z]).exp()
    gap = (q * (q / posterior(model, x)).log()).sum(0)
    return all_of(gap=close(model.log_prob(x) - model.exact_bound(x), gap, atol=1e-12), positive=at_least(gap, 0.0))


@claim("B11.1-4")
def waking_follows_the_gradient_of_the_bound() -> Evidence:
    """The wake phase's gradient is that of the exact bound by the generative weights (book sec. 11.1)."""
    model = machine(4, 3)
    x = every_mask(4).double()
    weights = [*model.down.parameters(), model.top]
    exact = torch.autograd.grad(-model.exact_bound(x).mean(), weights)
    drawn = torch.autograd.grad(model.wake_loss(x.repeat(3_000, 1)), weights)
    return all_of(
        **{
            name: close(mean, true, atol=0.02)
            for name, mean, true in zip(("weights", "biases", "top"), drawn, exact, strict=True)
        }
    )


@claim("B11.1-4")
def sleeping_learns_the_posterior_of_dreams() -> Evidence:
    """Sleep lowers KL(p(z|x) ‖ q(z|x)) over dreams, and here tightens the bound as well (book sec. 11.1)."""
    model = machine(4, 2)
    x = every_mask(4).double()

    def divergence() -> Tensor:
        """E_p(x) KL(p(z|x) ‖ q(z|x)), all states listed."""
        z = every_mask(2).double()[:, None].expand(-1, len(x), -1)
        log_q = model.log_recognition([x.expand(len(z), *x.shape), z]).detach()
        p = posterior(model, x)
        return ((p * (p.log() - log_q)).sum(0) * model.log_prob(x).exp()).sum().detach()

    before, gap = divergence(), (model.log_prob(x) - model.exact_bound(x)).mean().detach()
    evidence = model.log_prob(x).detach()
    optimizer = torch.optim.Adam(model.up.parameters(), lr=0.02)
    for _ in range(250):
        optimizer.zero_grad()
        model.sleep_loss(256).backward()
        optimizer.step()
    return all_of(
        divergence_falls=at_most(divergence(), 0.1 * before),
        bound_tightens=at_most((model.log_prob(x) - model.exact_bound(x)).mean(), 0.5 * gap),
        evidence_untouched=close(model.log_prob(x), evidence, atol=1e-12),
    )


@claim("B11.1-4")
def wake_and_sleep_raise_the_evidence() -> Evidence:
    """Both phases together raise the listed evidence of four patterns nearly to log ¼ (book sec. 11.1)."""
    model = machine(6, 3, scale=0.3)
    x = every_mask(2).double().repeat_interleave(3, 1)
    before = model.log_prob(x).mean().detach()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(500):
        optimizer.zero_grad()
        model.loss(x.repeat(8, 1)).backward()
        optimizer.step()
    best = -torch.tensor(4.0, dtype=torch.float64).log()
    return all_of(
        evidence=at_least(model.log_prob(x).mean(), before + 0.8 * (best - before)),
        bound=at_least(model.exact_bound(x).mean(), before),
        nothing_does_better=at_most(model.log_prob(x).mean(), best),
    )
