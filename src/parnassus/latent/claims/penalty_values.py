"""Claims about the values of penalties on codes (book sec. 4.4)."""

import torch

from parnassus.atlas import Evidence, all_of, claim, close
from parnassus.latent.autoencoders.penalties import code_l2_penalty, kl_sparsity_penalty, l1_penalty


@claim("B4.4-1")
def code_penalties_are_sums_over_the_code_and_means_over_the_batch() -> Evidence:
    """⟨Σ_k |z_k|⟩, ⟨Σ_k z_k²⟩ and Σ_k KL(ρ ‖ ρ̂_k) of three codes of two units (book sec. 4.4)."""
    z = torch.tensor([[1.0, -2.0], [0.5, 0.0], [-3.0, 4.0]], dtype=torch.float64)
    activation = torch.tensor([[0.1, 0.7], [0.3, 0.5]], dtype=torch.float64)  # means 0.2 and 0.6
    target = torch.tensor([0.05, 0.95], dtype=torch.float64)
    means = torch.tensor([[0.2, 0.8], [0.6, 0.4]], dtype=torch.float64)
    return all_of(
        l1=close(l1_penalty(z), 10.5 / 3, rtol=1e-12),
        l2=close(code_l2_penalty(z), 30.25 / 3, rtol=1e-12),
        kl_sparsity=close(
            kl_sparsity_penalty(activation, target=0.05), (target * (target / means).log()).sum(), rtol=1e-12
        ),
    )
