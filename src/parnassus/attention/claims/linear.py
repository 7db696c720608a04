"""Claims about attention that costs O(n): features, sums that run on, cosines and landmarks (Diehl sec. 4.1)."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum, rate
from parnassus.attention.cosformer import cosformer_attention, cosine_features
from parnassus.attention.dot_product import attention, attention_weights
from parnassus.attention.growth import (
    crossover_length,
    exact_attention_operations,
    linear_attention_operations,
)
from parnassus.attention.linear import (
    Sums,
    causal_linear_attention,
    elu_features,
    kernel_weights,
    linear_attention,
    mix,
    recall,
)
from parnassus.attention.linformer import linformer_attention
from parnassus.attention.masks import causal_mask
from parnassus.attention.nystrom import nystrom_attention
from parnassus.attention.peak_memory import peak_memory

LENGTHS = (128, 256, 512, 1024, 2048)


def tokens(length: int, width: int = 16, *, scale: float = 1.0) -> tuple[Tensor, Tensor, Tensor]:
    """Normal queries, keys and values, always the same."""
    source = torch.Generator().manual_seed(0)
    query, key, value = (torch.randn(length, width, generator=source, dtype=torch.float64) for _ in range(3))
    return scale * query, scale * key, value


def degree_two_features(x: Tensor) -> Tensor:
    """Monomials with ⟨φ(q), φ(k)⟩ = 1 + ⟨q, k⟩ + ⟨q, k⟩²/2, the exponential's Taylor sum up to degree 2."""
    squares = (x.unsqueeze(-1) * x.unsqueeze(-2)).flatten(-2) / 2**0.5
    return torch.cat([torch.ones_like(x[..., :1]), x, squares], -1)


@claim("D4.1.1")
def sums_over_keys_can_be_taken_once() -> Evidence:
    """φ(q_i)ᵀ Σ_j φ(k_j) v_jᵀ / Z_i equals attention with the n × n kernel ⟨φ(q_i), φ(k_j)⟩ (Diehl sec. 4.1)."""
    query, key, value = tokens(60)
    parts = {}
    for name, features in (("elu", elu_features), ("exp", torch.exp), ("taylor", degree_two_features)):
        parts[name] = close(
            linear_attention(query, key, value, features), kernel_weights(query, key, features) @ value, atol=1e-13
        )
        parts[f"{name}_causal"] = close(
            causal_linear_attention(query, key, value, features, chunk=16),
            kernel_weights(query, key, features, causal_mask(60)) @ value,
            atol=1e-13,
        )
    return all_of(**parts)


@claim("D4.1.1")
def features_of_the_exponential_give_softmax_attention() -> Evidence:
    """Where ⟨φ(q), φ(k)⟩ is exp⟨q, k⟩ up to degree 2, the error is of degree 3 in the scores (Diehl sec. 4.1)."""
    scales = torch.tensor([0.02, 0.05, 0.1, 0.2], dtype=torch.float64)
    errors = []
    for scale in scales:
        query, key, value = tokens(40, 4, scale=float(scale))
        exact = attention(query, key, value, scale=1.0).output
        errors.append((linear_attention(query, key, value, degree_two_features) - exact).abs().max())
    return rate(scales.square(), torch.stack(errors), 3.0, atol=0.1)


@erratum(
    "D4.1.1", printed="r_i ≈ (1/Z) Σ_m φ_m(q_i) S_m, one Z", right="(1/Z_i) Σ_m φ_m(q_i) S_m, Z_i = Σ_m φ_m(q_i) E_m"
)
def each_query_has_its_own_normaliser() -> Correction:
    """The notes write one Z; with it only one query gets a mixture of the values (Diehl sec. 4.1)."""
    query, key, value = tokens(60)
    asked, offered = elu_features(query), elu_features(key)
    sums, totals = offered.T @ value, asked @ offered.sum(0)
    exact = kernel_weights(query, key, elu_features) @ value
    return Correction(
        printed=close(asked @ sums / totals[0], exact, atol=1e-12),
        corrected=close(asked @ sums / totals[:, None], exact, atol=1e-12),
    )


@claim("D4.1.1")
def linear_attention_multiplies_and_remembers_in_proportion_to_length() -> Evidence:
    """Counted multiplications and bytes grow like n, those of exact attention like n² (Diehl sec. 4.1)."""
    width = 16
    counts: dict[str, list[int]] = {"linear": [], "causal": [], "exact": []}
    room: dict[str, list[int]] = {"linear": [], "causal": [], "exact": []}
    for length in LENGTHS:
        query, key, value = tokens(length, width)
        runs: dict[str, Callable[[], object]] = {
            "linear": partial(linear_attention, query, key, value),
            "causal": partial(causal_linear_attention, query, key, value),
            "exact": partial(attention, query, key, value),
        }
        for name, compute in runs.items():
            with FlopCounterMode(display=False) as counter:
                compute()
            counts[name].append(counter.get_total_flops() // 2)  # a multiplication and an addition count as two
            room[name].append(peak_memory(compute))
    lengths = torch.tensor(LENGTHS, dtype=torch.float64)
    return all_of(
        multiplications=rate(lengths, torch.tensor(counts["linear"]), 1.0, atol=0.01),
        causal_multiplications=rate(lengths, torch.tensor(counts["causal"]), 1.0, atol=0.02),
        exact_multiplications=rate(lengths, torch.tensor(counts["exact"]), 2.0, atol=0.01),
        bytes=rate(lengths, torch.tensor(room["linear"]), 1.0, atol=0.02),
        causal_bytes=rate(lengths, torch.tensor(room["causal"]), 1.0, atol=0.03),
        exact_bytes=rate(lengths, torch.tensor(room["exact"]), 2.0, atol=0.02),
        formula=close(counts["linear"][-1], linear_attention_operations(LENGTHS[-1], width, width)),
        exact_formula=close(counts["exact"][-1], exact_attention_operations(LENGTHS[-1], width)),
        crossover=close(crossover_length(width, width), width + 1),
    )


@claim("D4.1.2")
def the_transformer_is_a_recurrent_network() -> Evidence:
    """Token by token, S_i = S_{i−1} + φ(K_i) V_iᵀ gives what the masked parallel form gives (Diehl sec. 4.1)."""
    query, key, value = tokens(100)
    asked, offered = elu_features(query), elu_features(key)
    past: Sums | None = None
    steps, room = [], []
    for i in range(100):
        now = slice(i, i + 1)
        output, past = recall(asked[now], offered[now], value[now], past)
        steps.append(output)
        room.append(past.values.numel() + past.normaliser.numel())
    masked = kernel_weights(query, key, elu_features, causal_mask(100)) @ value
    return all_of(
        recurrent=close(torch.cat(steps), masked, atol=1e-12),
        chunked=close(causal_linear_attention(query, key, value, chunk=7), masked, atol=1e-12),
        memory_a_token=close(torch.tensor(room), 16 * 16 + 16),
    )


@claim("D4.1.2")
def the_normaliser_is_positive() -> Evidence:
    """Z_i > 0 whatever the tokens, as elu + 1 > 0; with relu features a query may see nothing (Diehl sec. 4.1)."""
    x = torch.linspace(-80, 80, 1001, dtype=torch.float32)  # to where single precision ends
    query, key, _ = tokens(200, 4, scale=20.0)
    total = elu_features(query) @ elu_features(key).sum(0)
    relu = query.relu() @ key.relu().sum(0)
    slope = [(elu_features(torch.tensor(h)) - 1.0) / h for h in (1e-4, -1e-4)]
    return all_of(
        features=at_least(elu_features(x), 1e-36),
        normaliser=at_least(total, 1e-12),
        smooth_at_zero=close(torch.stack(slope), 1.0, atol=1e-3),
        relu_fails=close(relu.min(), 0.0),
    )


@claim("D4.1.2")
def elu_features_are_no_approximation_of_the_softmax() -> Evidence:
    """Weights of elu + 1 stay near uniform while those of the softmax sharpen with the scores (Diehl sec. 4.1)."""
    far, sharpness, elu_sharpness = [], [], []
    for scale in (0.5, 1.0, 2.0, 4.0):
        query, key, _ = tokens(64, scale=scale)
        exact, elu = attention_weights(query, key), kernel_weights(query, key, elu_features)
        far.append((exact - elu).abs().sum(-1).mean() / 2)  # total variation, 1 at most
        sharpness.append(exact.amax(-1).mean())
        elu_sharpness.append(elu.amax(-1).mean())
    return all_of(
        distance_grows=at_least(torch.stack(far).diff(), 0.0),
        far_at_scale_4=at_least(far[-1], 0.8),
        softmax_decides=at_least(sharpness[-1], 0.8),
        elu_does_not=at_most(elu_sharpness[-1], 0.1),
    )


@erratum(
    "D4.1.2",
    printed="φ(Q_i)ᵀ Σ_i φ(K_i) V_jᵀ / φ(Q_i)ᵀ Σ_i φ(K_i)",
    right="φ(Q_i)ᵀ Σ_j φ(K_j) V_jᵀ / φ(Q_i)ᵀ Σ_j φ(K_j)",
)
def keys_and_values_have_one_index() -> Correction:
    """Summed over i as printed, keys come apart from their values: each answer is a value, unmixed (Diehl sec. 4.1)."""
    query, key, value = tokens(60)
    asked, offered = elu_features(query), elu_features(key)
    exact = kernel_weights(query, key, elu_features) @ value
    printed = (
        (asked @ offered.sum(0)).unsqueeze(1) * value / (asked @ offered.sum(0)).unsqueeze(1)
    )  # j = i is left over
    return Correction(
        printed=close(printed, exact, atol=1e-2), corrected=close(mix(asked, offered, value), exact, atol=1e-12)
    )


@claim("C-20")
def a_cosine_of_the_distance_does_not_cancel() -> Evidence:
    """In the ratio a weight e^{i−j} loses i; cos(π(i−j)/2M) keeps it and favours what is near (Diehl sec. 4.1)."""
    length, horizon = 40, 60
    query, key, value = (x.abs() for x in tokens(length))
    place = torch.arange(length, dtype=torch.float64).unsqueeze(-1)

    def toy(query: Tensor, start: int) -> Tensor:
        """Queries from place `start` on; features eⁱ q_i and e^{−j} k_j."""
        return mix(query * (place + start - length).exp(), key * (-place).exp(), value)

    def cosine(query: Tensor, start: int) -> Tensor:
        return mix(cosine_features(query, horizon, start=start), cosine_features(key, horizon), value)

    kernel = query @ key.T * (torch.pi / 2 * (place - place.T) / horizon).cos()
    same = torch.ones(length, 16, dtype=torch.float64)  # all tokens alike: only places tell them apart
    weights = kernel_weights(same, same, partial(cosine_features, horizon=length))
    distance = (place - place.T).abs()
    return all_of(
        toy_forgets_where_the_query_stands=close(toy(query, 20), toy(query, 0), rtol=1e-9),
        cosine_does_not=at_least((cosine(query, 20) - cosine(query, 0)).abs().max(), 1e-2),
        explicit_weights=close(
            cosformer_attention(query, key, value, horizon=horizon),
            kernel / kernel.sum(-1, keepdim=True) @ value,
            atol=1e-12,
        ),
        near_is_favoured=at_most((weights * distance).sum(-1)[[0, -1]], distance.mean(-1)[[0, -1]] - 3),
    )


@claim("C-21")
def landmarks_rebuild_the_weights() -> Evidence:
    """The error of Nyström attention falls with the landmarks, and is none with one at every place (Diehl sec. 4.1)."""
    source = torch.Generator().manual_seed(0)
    slow = torch.randn(3, 128, 8, generator=source, dtype=torch.float64).cumsum(1) / 8  # neighbours are alike
    query, key, value = slow
    exact = attention(query, key, value).output
    size = exact.square().mean().sqrt()
    errors = [
        (nystrom_attention(query, key, value, count=count, steps=40) - exact).square().mean().sqrt() / size
        for count in (1, 4, 16, 64)
    ]
    every = nystrom_attention(*tokens(12), count=12, steps=60)
    return all_of(
        falls=at_most(torch.stack(errors).diff(), 0.0),
        one_landmark=at_least(errors[0], 0.1),
        sixteen_landmarks=at_most(errors[2], 0.01),
        landmark_at_every_place=close(every, attention(*tokens(12)).output, atol=1e-8),
    )


@claim("D4.1.1")
def linformer_is_exact_when_nothing_is_lost() -> Evidence:
    """Keys and values that lie on k directions in time survive a shrinking from n to k rows (Diehl sec. 4.1)."""
    query, key, value = tokens(24)
    order = torch.eye(24, dtype=torch.float64)[torch.randperm(24, generator=torch.Generator().manual_seed(0))]
    pooled = torch.eye(4, dtype=torch.float64).repeat_interleave(6, 1) / 6  # means of stretches of six
    alike, values = (x[:4].repeat_interleave(6, 0) for x in (key, value))
    return all_of(
        every_row_kept=close(
            linformer_attention(query, key, value, order, order), attention(query, key, value).output, atol=1e-12
        ),
        stretches_alike=close(
            linformer_attention(query, alike, values, pooled, pooled),
            attention(query, alike, values).output,
            atol=1e-12,
        ),
        else_not=at_least(
            (linformer_attention(query, key, value, pooled, pooled) - attention(query, key, value).output).abs().max(),
            0.1,
        ),
    )
