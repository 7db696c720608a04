"""Claims about attention of linear cost: feature maps, running sums, cosine weights, landmarks (Diehl sec. 4.1)."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal, rate
from parnassus.attention.core.dot_product import attention, attention_weights
from parnassus.attention.core.masks import causal_mask
from parnassus.attention.efficient.complexity import (
    crossover_length,
    exact_attention_operations,
    linear_attention_operations,
)
from parnassus.attention.efficient.cosformer import cosformer_attention, cosine_features
from parnassus.attention.efficient.linear_attention import (
    KeyValueSums,
    causal_feature_attention,
    causal_linear_attention,
    elu_features,
    feature_attention,
    linear_attention,
    linear_attention_weights,
)
from parnassus.attention.efficient.linformer import linformer_attention
from parnassus.attention.efficient.nystrom import nystrom_attention
from parnassus.attention.fast.peak_memory import peak_memory

LENGTHS = (128, 256, 512, 1024, 2048)


def normal_inputs(length: int, width: int = 16, *, scale: float = 1.0) -> tuple[Tensor, Tensor, Tensor]:
    """Standard normal queries, keys and values from a fixed seed."""
    generator = torch.Generator().manual_seed(0)
    query, key, value = (torch.randn(length, width, generator=generator, dtype=torch.float64) for _ in range(3))
    return scale * query, scale * key, value


def degree_two_features(x: Tensor) -> Tensor:
    """Monomials with ⟨φ(q), φ(k)⟩ = 1 + ⟨q, k⟩ + ⟨q, k⟩²/2, the exponential's Taylor sum up to degree 2."""
    squares = (x.unsqueeze(-1) * x.unsqueeze(-2)).flatten(-2) / 2**0.5
    return torch.cat([torch.ones_like(x[..., :1]), x, squares], -1)


@claim("D4.1.1")
def linear_attention_equals_attention_with_the_feature_kernel() -> Evidence:
    """φ(q_i)ᵀ Σ_j φ(k_j) v_jᵀ / Z_i equals attention with the n × n kernel ⟨φ(q_i), φ(k_j)⟩ (Diehl sec. 4.1)."""
    query, key, value = normal_inputs(60)
    parts = {}
    for name, features in (("elu", elu_features), ("exp", torch.exp), ("taylor", degree_two_features)):
        parts[name] = close(
            linear_attention(query, key, value, features),
            linear_attention_weights(query, key, features) @ value,
            atol=1e-13,
        )
        parts[f"{name}_causal"] = close(
            causal_linear_attention(query, key, value, features, chunk=16),
            linear_attention_weights(query, key, features, causal_mask(60)) @ value,
            atol=1e-13,
        )
    return all_of(**parts)


@claim("D4.1.1")
def taylor_features_approximate_softmax_attention() -> Evidence:
    """If ⟨φ(q), φ(k)⟩ is exp⟨q, k⟩ up to degree 2, the error is of degree 3 in the scores (Diehl sec. 4.1)."""
    scales = torch.tensor([0.02, 0.05, 0.1, 0.2], dtype=torch.float64)
    errors = []
    for scale in scales:
        query, key, value = normal_inputs(40, 4, scale=float(scale))
        exact = attention(query, key, value, scale=1.0).output
        errors.append((linear_attention(query, key, value, degree_two_features) - exact).abs().max())
    return rate(scales.square(), torch.stack(errors), 3.0, atol=0.1)


@erratum(
    "D4.1.1", printed="r_i ≈ (1/Z) Σ_m φ_m(q_i) S_m, one Z", right="(1/Z_i) Σ_m φ_m(q_i) S_m, Z_i = Σ_m φ_m(q_i) E_m"
)
def each_query_has_its_own_normaliser() -> Correction:
    """With a single Z, as printed, only one query gets a weighted mean of the values (Diehl sec. 4.1)."""
    query, key, value = normal_inputs(60)
    query_features, key_features = elu_features(query), elu_features(key)
    sums, totals = key_features.T @ value, query_features @ key_features.sum(0)
    exact = linear_attention_weights(query, key, elu_features) @ value
    return Correction(
        printed=close(query_features @ sums / totals[0], exact, atol=1e-12),
        corrected=close(query_features @ sums / totals[:, None], exact, atol=1e-12),
    )


@claim("D4.1.1")
def linear_attention_time_and_memory_are_linear_in_the_length() -> Evidence:
    """Counted multiplications and bytes grow as n, those of exact attention as n² (Diehl sec. 4.1)."""
    width = 16
    counts: dict[str, list[int]] = {"linear": [], "causal": [], "exact": []}
    memory: dict[str, list[int]] = {"linear": [], "causal": [], "exact": []}
    for length in LENGTHS:
        query, key, value = normal_inputs(length, width)
        runs: dict[str, Callable[[], object]] = {
            "linear": partial(linear_attention, query, key, value),
            "causal": partial(causal_linear_attention, query, key, value),
            "exact": partial(attention, query, key, value),
        }
        for name, compute in runs.items():
            with FlopCounterMode(display=False) as counter:
                compute()
            counts[name].append(counter.get_total_flops() // 2)  # a multiplication and an addition count as two
            memory[name].append(peak_memory(compute))
    lengths = torch.tensor(LENGTHS, dtype=torch.float64)
    return all_of(
        multiplications=rate(lengths, torch.tensor(counts["linear"]), 1.0, atol=0.01),
        causal_multiplications=rate(lengths, torch.tensor(counts["causal"]), 1.0, atol=0.02),
        exact_multiplications=rate(lengths, torch.tensor(counts["exact"]), 2.0, atol=0.01),
        bytes=rate(lengths, torch.tensor(memory["linear"]), 1.0, atol=0.02),
        causal_bytes=rate(lengths, torch.tensor(memory["causal"]), 1.0, atol=0.03),
        exact_bytes=rate(lengths, torch.tensor(memory["exact"]), 2.0, atol=0.02),
        formula=close(counts["linear"][-1], linear_attention_operations(LENGTHS[-1], width, width)),
        exact_formula=close(counts["exact"][-1], exact_attention_operations(LENGTHS[-1], width)),
        crossover=close(crossover_length(width, width), width + 1),
    )


@claim("D4.1.2")
def causal_linear_attention_is_a_recurrent_network() -> Evidence:
    """Token by token, S_i = S_{i−1} + φ(K_i) V_iᵀ gives the output of the masked parallel form (Diehl sec. 4.1)."""
    query, key, value = normal_inputs(100)
    query_features, key_features = elu_features(query), elu_features(key)
    state: KeyValueSums | None = None
    steps, state_sizes = [], []
    for i in range(100):
        current = slice(i, i + 1)
        output, state = causal_feature_attention(query_features[current], key_features[current], value[current], state)
        steps.append(output)
        state_sizes.append(state.values.numel() + state.normaliser.numel())
    masked = linear_attention_weights(query, key, elu_features, causal_mask(100)) @ value
    return all_of(
        recurrent=close(torch.cat(steps), masked, atol=1e-12),
        chunked=close(causal_linear_attention(query, key, value, chunk=7), masked, atol=1e-12),
        state_size=close(torch.tensor(state_sizes), 16 * 16 + 16),
    )


@claim("D4.1.2")
def the_normaliser_of_linear_attention_is_positive() -> Evidence:
    """Z_i > 0 for all inputs, as elu + 1 > 0; with relu features Z_i can be 0 (Diehl sec. 4.1)."""
    x = torch.linspace(-80, 80, 1001, dtype=torch.float32)  # the range of exp in float32
    query, key, _ = normal_inputs(200, 4, scale=20.0)
    total = elu_features(query) @ elu_features(key).sum(0)
    relu = query.relu() @ key.relu().sum(0)
    difference_quotients = [(elu_features(torch.tensor(h)) - 1.0) / h for h in (1e-4, -1e-4)]
    return all_of(
        features=greater_equal(elu_features(x), 1e-36),
        normaliser=greater_equal(total, 1e-12),
        smooth_at_zero=close(torch.stack(difference_quotients), 1.0, atol=1e-3),
        relu_normaliser_can_be_zero=close(relu.min(), 0.0),
    )


@claim("D4.1.2")
def elu_features_do_not_approximate_the_softmax() -> Evidence:
    """Weights of elu + 1 remain near uniform while softmax weights concentrate as scores grow (Diehl sec. 4.1)."""
    distances, largest_weights, largest_elu_weights = [], [], []
    for scale in (0.5, 1.0, 2.0, 4.0):
        query, key, _ = normal_inputs(64, scale=scale)
        exact, elu = attention_weights(query, key), linear_attention_weights(query, key, elu_features)
        distances.append((exact - elu).abs().sum(-1).mean() / 2)  # total variation distance
        largest_weights.append(exact.amax(-1).mean())
        largest_elu_weights.append(elu.amax(-1).mean())
    return all_of(
        distance_grows=greater_equal(torch.stack(distances).diff(), 0.0),
        distance_at_scale_4=greater_equal(distances[-1], 0.8),
        largest_softmax_weight=greater_equal(largest_weights[-1], 0.8),
        largest_elu_weight=less_equal(largest_elu_weights[-1], 0.1),
    )


@erratum(
    "D4.1.2",
    printed="φ(Q_i)ᵀ Σ_i φ(K_i) V_jᵀ / φ(Q_i)ᵀ Σ_i φ(K_i)",
    right="φ(Q_i)ᵀ Σ_j φ(K_j) V_jᵀ / φ(Q_i)ᵀ Σ_j φ(K_j)",
)
def keys_and_values_have_one_index() -> Correction:
    """Summed over i as printed, keys are separated from values: each output is a single value (Diehl sec. 4.1)."""
    query, key, value = normal_inputs(60)
    query_features, key_features = elu_features(query), elu_features(key)
    exact = linear_attention_weights(query, key, elu_features) @ value
    printed = (
        (query_features @ key_features.sum(0)).unsqueeze(1)
        * value
        / (query_features @ key_features.sum(0)).unsqueeze(1)
    )  # the unbound j read as i
    return Correction(
        printed=close(printed, exact, atol=1e-2),
        corrected=close(feature_attention(query_features, key_features, value), exact, atol=1e-12),
    )


@claim("C-20")
def cosine_weights_depend_on_the_query_position() -> Evidence:
    """The factor eⁱ of e^{i−j} cancels in the ratio; cos(π(i−j)/2M) favours near positions (Diehl sec. 4.1)."""
    length, horizon = 40, 60
    query, key, value = (x.abs() for x in normal_inputs(length))
    position = torch.arange(length, dtype=torch.float64).unsqueeze(-1)

    def exponential_weighting(query: Tensor, start: int) -> Tensor:
        """Attention of queries from position `start` on, with features eⁱ q_i and e^{−j} k_j."""
        return feature_attention(query * (position + start - length).exp(), key * (-position).exp(), value)

    def cosine_weighting(query: Tensor, start: int) -> Tensor:
        return feature_attention(cosine_features(query, horizon, start=start), cosine_features(key, horizon), value)

    kernel = query @ key.T * (torch.pi / 2 * (position - position.T) / horizon).cos()
    same = torch.ones(length, 16, dtype=torch.float64)  # identical tokens: weights depend on positions only
    weights = linear_attention_weights(same, same, partial(cosine_features, horizon=length))
    distance = (position - position.T).abs()
    return all_of(
        exponential_does_not_depend_on_the_query_position=close(
            exponential_weighting(query, 20), exponential_weighting(query, 0), rtol=1e-9
        ),
        cosine_does=greater_equal((cosine_weighting(query, 20) - cosine_weighting(query, 0)).abs().max(), 1e-2),
        explicit_weights=close(
            cosformer_attention(query, key, value, horizon=horizon),
            kernel / kernel.sum(-1, keepdim=True) @ value,
            atol=1e-12,
        ),
        near_positions_have_larger_weights=less_equal(
            (weights * distance).sum(-1)[[0, -1]], distance.mean(-1)[[0, -1]] - 3
        ),
    )


@claim("C-21")
def nystrom_error_decreases_with_the_number_of_landmarks() -> Evidence:
    """The error of Nyström attention decreases with landmarks and is 0 with one at every position (Diehl sec. 4.1)."""
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(3, 128, 8, generator=generator, dtype=torch.float64).cumsum(1) / 8  # neighbours are similar
    query, key, value = inputs
    exact = attention(query, key, value).output
    size = exact.square().mean().sqrt()
    errors = [
        (nystrom_attention(query, key, value, num_landmarks=count, steps=40) - exact).square().mean().sqrt() / size
        for count in (1, 4, 16, 64)
    ]
    exact_landmarks = nystrom_attention(*normal_inputs(12), num_landmarks=12, steps=60)
    return all_of(
        error_decreases=less_equal(torch.stack(errors).diff(), 0.0),
        one_landmark=greater_equal(errors[0], 0.1),
        sixteen_landmarks=less_equal(errors[2], 0.01),
        landmark_at_every_position=close(exact_landmarks, attention(*normal_inputs(12)).output, atol=1e-8),
    )


@claim("D4.1.1")
def linformer_is_exact_on_sequences_in_the_range_of_its_projection() -> Evidence:
    """Exact if keys and values lie in the k dimensions that the projection from n to k rows keeps (Diehl sec. 4.1)."""
    query, key, value = normal_inputs(24)
    permutation = torch.eye(24, dtype=torch.float64)[torch.randperm(24, generator=torch.Generator().manual_seed(0))]
    pooled = torch.eye(4, dtype=torch.float64).repeat_interleave(6, 1) / 6  # means of blocks of six
    constant_keys, constant_values = (x[:4].repeat_interleave(6, 0) for x in (key, value))
    return all_of(
        permutation_as_projection=close(
            linformer_attention(query, key, value, permutation, permutation),
            attention(query, key, value).output,
            atol=1e-12,
        ),
        blockwise_constant_sequences=close(
            linformer_attention(query, constant_keys, constant_values, pooled, pooled),
            attention(query, constant_keys, constant_values).output,
            atol=1e-12,
        ),
        other_sequences=greater_equal(
            (linformer_attention(query, key, value, pooled, pooled) - attention(query, key, value).output).abs().max(),
            0.1,
        ),
    )
