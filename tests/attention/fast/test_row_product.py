"""The parallel product of one row with a matrix, compared with torch."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import Tensor
from torch.nn.functional import linear

from parnassus.attention import RowLinear, gpt, row_linear
from parnassus.attention.fast.row_product import BLOCKS_PER_THREAD, MAX_CACHED_WEIGHTS, MIN_WEIGHTS


@pytest.fixture(params=[2, 3])
def num_threads(request: pytest.FixtureRequest) -> Iterator[int]:
    previous = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(previous)


@pytest.mark.usefixtures("num_threads")
@pytest.mark.parametrize(
    "out", [MAX_CACHED_WEIGHTS // 64 + 16, MAX_CACHED_WEIGHTS // 64 + 1, MIN_WEIGHTS // 64, MIN_WEIGHTS // 64 + 1, 10]
)
@pytest.mark.parametrize("shape", [(64,), (1, 64), (1, 1, 64), (2, 3, 64), (0, 64)])
def test_row_linear_matches_linear_map(out: int, shape: tuple[int, ...]) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(shape, generator=generator, dtype=torch.float64)
    weight = torch.randn(out, 64, generator=generator, dtype=torch.float64)
    bias = torch.randn(out, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(row_linear(x, weight, bias), x @ weight.mT + bias)
    torch.testing.assert_close(row_linear(x, weight), x @ weight.mT)
    torch.testing.assert_close(row_linear(x, weight.mT.contiguous().mT, bias), x @ weight.mT + bias)


@pytest.mark.usefixtures("num_threads")
def test_fewer_outputs_than_blocks_fall_back_to_blas() -> None:
    x, weight = torch.randn(1, MAX_CACHED_WEIGHTS).double(), torch.randn(2, MAX_CACHED_WEIGHTS).double()
    torch.testing.assert_close(row_linear(x, weight, torch.ones(2).double()), x @ weight.mT + 1)


@pytest.mark.usefixtures("num_threads")
def test_autocast_precision_is_respected() -> None:
    layer, row = RowLinear(64, MIN_WEIGHTS // 64), torch.randn(1, 64)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        assert layer(row).dtype == torch.bfloat16
        torch.testing.assert_close(layer(row), linear(row, layer.weight, layer.bias), atol=0.02, rtol=0.02)


@pytest.mark.usefixtures("num_threads")
def test_gradients_match_linear_map() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(1, 64, generator=generator, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(MIN_WEIGHTS // 64, 64, generator=generator, dtype=torch.float64, requires_grad=True)
    gradients = torch.autograd.grad(row_linear(x, weight).square().sum(), (x, weight))
    expected = torch.autograd.grad((x @ weight.mT).square().sum(), (x, weight))
    torch.testing.assert_close(gradients, expected)


def test_weight_rows_are_divided_into_equal_blocks(num_threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    shapes: list[tuple[int, ...]] = []
    bmm = torch.bmm

    def record_shape(row: Tensor, blocks: Tensor) -> Tensor:
        shapes.append(tuple(blocks.shape))
        return bmm(row, blocks)

    monkeypatch.setattr(torch, "bmm", record_shape)
    row_linear(torch.randn(64), torch.randn(MAX_CACHED_WEIGHTS // 64 + 1, 64))
    row_linear(torch.randn(64), torch.randn(MAX_CACHED_WEIGHTS // 64, 64))  # the weights fit into the cache: no blocks
    row_linear(torch.randn(2, 64), torch.randn(MAX_CACHED_WEIGHTS // 64 + 1, 64))  # two rows: computed by BLAS
    assert shapes == [
        (BLOCKS_PER_THREAD * num_threads, 64, (MAX_CACHED_WEIGHTS // 64 + 1) // (BLOCKS_PER_THREAD * num_threads))
    ]


@pytest.mark.usefixtures("num_threads")
def test_results_are_not_overwritten_by_later_calls() -> None:
    rows, weight = torch.randn(3, 64), torch.randn(MIN_WEIGHTS // 64, 64)
    results = [row_linear(row, weight) for row in rows]
    torch.testing.assert_close(torch.stack(results), rows @ weight.mT)


@pytest.mark.usefixtures("num_threads")
def test_threads_use_separate_buffers() -> None:
    rows, weight = torch.randn(64, 512).double(), torch.randn(MIN_WEIGHTS // 512, 512).double()
    with ThreadPoolExecutor(4) as executor:
        results = list(executor.map(lambda row: row_linear(row, weight), rows))
    torch.testing.assert_close(torch.stack(results), rows @ weight.mT)


@pytest.mark.usefixtures("num_threads")
def test_row_linear_works_across_grad_modes_and_inside_transformations() -> None:
    rows, weight = torch.randn(3, 64), torch.randn(MIN_WEIGHTS // 64, 64)
    with torch.inference_mode():
        first = row_linear(rows[0], weight)
    with torch.no_grad():
        second = row_linear(rows[1], weight.requires_grad_())
    torch.testing.assert_close(torch.stack([first.clone(), second]), rows[:2] @ weight.detach().mT)
    vmapped = torch.func.vmap(lambda row: row_linear(row, weight.detach()))(rows)
    torch.testing.assert_close(vmapped, rows @ weight.detach().mT)
    functional = torch.func.functionalize(row_linear)(rows[0], weight.detach())
    torch.testing.assert_close(functional, rows[0] @ weight.detach().mT)
    gradient = torch.func.grad(lambda row: row_linear(row, weight.detach()).mean())(rows[0])
    torch.testing.assert_close(gradient, weight.detach().mean(0))


@pytest.mark.usefixtures("num_threads")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_accumulates_in_single_precision(dtype: torch.dtype) -> None:
    x, weight = torch.full((1, 512), 1.01).to(dtype), torch.full((MIN_WEIGHTS // 512, 512), 1.01).to(dtype)
    assert torch.equal(row_linear(x, weight), linear(x, weight))


@pytest.mark.usefixtures("num_threads")
def test_cached_decoding_of_a_large_model_matches_full_pass() -> None:
    torch.manual_seed(0)
    model = gpt(11, 6, width=256, heads=2, depth=1).double().eval()
    assert max(weight.numel() for weight in model.parameters()) >= MIN_WEIGHTS
    tokens = torch.randint(11, (1, 6))
    _, cache = model.read(tokens[:, :3])
    logits = [model.read(tokens[:, position : position + 1], cache)[0] for position in range(3, 6)]
    torch.testing.assert_close(torch.stack(logits, 1), model(tokens)[:, 3:].detach())


@pytest.mark.usefixtures("num_threads")
def test_layer_matches_torch_linear() -> None:
    torch.manual_seed(0)
    layer, reference = RowLinear(64, MIN_WEIGHTS // 32), torch.nn.Linear(64, MIN_WEIGHTS // 32)
    reference.load_state_dict(layer.state_dict())
    row = torch.randn(1, 64)
    with torch.no_grad():
        torch.testing.assert_close(layer(row), reference(row))
