"""Claims about backpropagation: paths, what is kept on the way there, what is computed on the way back."""

from collections.abc import Callable

import numpy as np
import torch
from torch.nn import functional

from parnassus.atlas import Evidence, all_of, claim, close, rate
from parnassus.autodiff.finite_differences import difference_gradient
from parnassus.autodiff.functions import gelu, leaky_relu, relu, sigmoid, squared_error
from parnassus.autodiff.graph import Symbol, forward_pass
from parnassus.autodiff.operation import Array, elementwise
from parnassus.autodiff.operations import cos, sin, tanh, total, transpose
from parnassus.autodiff.paths import all_paths, edge_count, slope_by_edges, slope_by_paths
from parnassus.autodiff.tape import Variable, pull_back, remembered_bytes, value_and_gradients
from parnassus.autodiff.toy_network import TwoNeurons, two_neurons
from parnassus.autodiff.two_layers import propagate_backward, propagate_forward

ACTIVATIONS: dict[str, tuple[Callable[[Variable], Variable], Callable[[torch.Tensor], torch.Tensor]]] = {
    "sigmoid": (sigmoid, torch.sigmoid),
    "tanh": (tanh, torch.tanh),
    "relu": (relu, torch.relu),
    "leaky_relu": (leaky_relu, functional.leaky_relu),
    "gelu": (gelu, functional.gelu),
    "step": (
        elementwise("step", lambda x: np.where(x > 0, 1.0, 0.0), lambda _y, x: 0 * x),
        lambda x: (x > 0).to(x.dtype) + 0 * x,  # a slope of 0, which torch's comparison alone would not have
    ),
}
X, W1, W2 = 0.7, 1.3, -0.8


def toy(sigma: Callable[[Variable], Variable] = sigmoid) -> TwoNeurons[Variable]:
    return two_neurons(Variable(X), Variable(W1), Variable(W2), sigma)


@claim("B2.1-3")
def a_forward_pass_leaves_a_number_at_every_node() -> Evidence:
    """z_i = w_i x, h_i = σ(z_i), y = h₁ + h₂: tape and graph keep the same eight numbers (book fig. 2.1)."""
    logistic = [1 / (1 + np.exp(-w * X)) for w in (W1, W2)]
    by_hand = np.array([X, W1, W2, W1 * X, W2 * X, *logistic, sum(logistic)])
    tape = toy()
    graph = two_neurons(Symbol("x"), Symbol("w1"), Symbol("w2"))
    values = forward_pass([graph.y], {graph.x: X, graph.w1: W1, graph.w2: W2})
    return all_of(
        tape=close(np.array([float(node.value) for node in tape.names]), by_hand, rtol=1e-13),
        graph=close(np.array([float(values[node]) for node in graph.names]), by_hand, rtol=1e-13),
    )


@claim("B2.1-4")
def slopes_multiply_along_paths_and_add_over_them() -> Evidence:
    """∂y/∂w₁ = σ′(z₁) x and ∂y/∂x = σ′(z₁) w₁ + σ′(z₂) w₂, by one path and by two (book eq. 2.3)."""
    net = toy()
    one, two = (float(h.value * (1 - h.value)) for h in (net.h1, net.h2))
    formula = np.array([one * X, two * X, one * W1 + two * W2])
    ends = (net.w1, net.w2, net.x)
    return all_of(
        paths=close(np.array([slope_by_paths(end, net.y) for end in ends]), formula, rtol=1e-13),
        edges=close(np.array([slope_by_edges(end, net.y) for end in ends]), formula, rtol=1e-13),
        sweep=close(np.array(pull_back(net.y, ends)), formula, rtol=1e-13),
        how_many=close(np.array([len(list(all_paths(end, net.y))) for end in ends]), np.array([1, 1, 2])),
    )


@claim("B2.1-4")
def every_activation_backpropagates_as_in_torch() -> Evidence:
    """The toy network's three slopes equal torch's and central differences for six activations (book sec. 2.1)."""
    point = np.array([X, W1, W2])
    parts = {}
    for name, (ours, theirs) in ACTIVATIONS.items():
        net = toy(ours)
        slopes = np.array([slope_by_paths(end, net.y) for end in (net.x, net.w1, net.w2)])
        x, w1, w2 = leaves = [torch.tensor(each, dtype=torch.float64, requires_grad=True) for each in point]
        expected = torch.stack(torch.autograd.grad(theirs(w1 * x) + theirs(w2 * x), leaves))

        def value(p: Array, ours: Callable[[Variable], Variable] = ours) -> Array:
            return two_neurons(Variable(p[0]), Variable(p[1]), Variable(p[2]), ours).y.value

        parts[f"{name}_torch"] = close(slopes, expected, rtol=1e-13)
        parts[f"{name}_differences"] = close(difference_gradient(value, point), slopes, rtol=1e-8, atol=1e-9)
    return all_of(**parts)


@claim("B2.1-4")
def paths_double_where_edges_only_add() -> Evidence:
    """A chain of n forks has 2ⁿ paths but 4n edges, and both give the same slope (book sec. 2.1)."""
    depths = np.array([2, 4, 6, 8, 10])
    counts, edges, both = [], [], []
    for depth in depths:
        start = Variable(0.4)
        end = start
        for _ in range(depth):
            end = sin(end) + cos(end)
        counts.append(len(list(all_paths(start, end))))
        edges.append(edge_count(end))
        both.append((slope_by_paths(start, end), slope_by_edges(start, end)))
    by_paths, by_edges = np.array(both).T
    return all_of(
        paths=close(np.array(counts), 2**depths),
        edges=close(np.array(edges), 4 * depths),
        same_slope=close(by_paths, by_edges, rtol=1e-12),
    )


@claim("Z5.7")
def what_is_kept_suffices_for_the_way_back() -> Evidence:
    """The backward sweep evaluates no activation again, and still has the gradient of torch (Zhao sec. 5)."""
    calls = []

    def counted_tanh(x: Array) -> Array:
        calls.append(x.shape)
        return np.asarray(np.tanh(x))

    phi = elementwise("tanh", counted_tanh, lambda y, _x: 1 - y * y)
    source = np.random.default_rng(0)
    weights = [source.normal(size=(6, 6)) for _ in range(5)]
    h = Variable(source.normal(size=(3, 6)))
    variables = [Variable(weight) for weight in weights]
    out = h
    for weight in variables:
        out = phi(out @ weight)
    forward = len(calls)
    slopes = pull_back(total(out * out), variables)
    tensors = [torch.from_numpy(weight).requires_grad_() for weight in weights]
    theirs = torch.from_numpy(h.value)
    for tensor in tensors:
        theirs = (theirs @ tensor).tanh()
    expected = torch.autograd.grad(theirs.square().sum(), tensors)
    return all_of(
        forward_calls=close(forward, 5),
        backward_calls=close(len(calls) - forward, 0),
        gradient=close(np.stack(slopes), torch.stack(expected), rtol=1e-11, atol=1e-13),
    )


@claim("Z5.7")
def memory_grows_with_depth_and_with_batch() -> Evidence:
    """What a forward pass keeps grows like depth to the power 1 and like batch to the power 1 (Zhao sec. 5)."""

    def kept(depth: int, batch: int) -> int:
        """Bytes of the values between input and output, weights left out."""
        weight = np.eye(8)
        out = start = Variable(np.ones((batch, 8)))
        for _ in range(depth):
            out = tanh(out @ weight)
        return remembered_bytes(out) - start.value.nbytes

    sizes = [1, 2, 4, 8, 16, 32]
    return all_of(
        depth=rate(np.array(sizes), np.array([kept(size, 4) for size in sizes]), 1.0, atol=1e-9),
        batch=rate(np.array(sizes), np.array([kept(4, size) for size in sizes]), 1.0, atol=1e-9),
        two_arrays_a_layer=close(kept(5, 3), 5 * 2 * 3 * 8 * 8),
    )


@claim("Z5.8", "Z5.7")
def the_backward_pass_by_hand_is_the_tape() -> Evidence:
    """∂J/∂W₂ = (∂J/∂o) hᵀ + λW₂ and ∂J/∂W₁ = ((W₂ᵀ ∂J/∂o) ⊙ φ′(z)) xᵀ + λW₁, three ways (Zhao sec. 5)."""
    source = np.random.default_rng(1)
    x, w1, w2 = source.normal(size=(7, 4)), source.normal(size=(5, 4)), source.normal(size=(3, 5))
    target, penalty = source.normal(size=(7, 3)), 0.3

    kept = propagate_forward(x, w1, w2, np.tanh)
    slope = 2 * (kept.o - target) / len(x)
    hand = propagate_backward(kept, slope, w1, w2, phi_slope=lambda z: 1 - np.tanh(z) ** 2, penalty=penalty)

    def loss(w1: Variable, w2: Variable) -> Variable:
        out = tanh(x @ transpose(w1)) @ transpose(w2)
        return squared_error(out, target) + (total(w1 * w1) + total(w2 * w2)) * (penalty / 2)

    value, tape = value_and_gradients(loss, w1, w2)
    tensors = [torch.from_numpy(each).requires_grad_() for each in (w1, w2)]
    out = (torch.from_numpy(x) @ tensors[0].T).tanh() @ tensors[1].T
    objective = (out - torch.from_numpy(target)).square().sum() / 7
    objective = objective + penalty / 2 * (tensors[0].square().sum() + tensors[1].square().sum())
    theirs = torch.autograd.grad(objective, tensors)
    return all_of(
        first_by_tape=close(hand[0], tape[0], rtol=1e-12, atol=1e-14),
        second_by_tape=close(hand[1], tape[1], rtol=1e-12, atol=1e-14),
        first_by_torch=close(hand[0], theirs[0], rtol=1e-12, atol=1e-14),
        second_by_torch=close(hand[1], theirs[1], rtol=1e-12, atol=1e-14),
        objective=close(value, objective.detach(), rtol=1e-14),
    )
