"""Claims about backpropagation: paths, stored values and backward passes (book sec. 2.1, Zhao sec. 5)."""

from collections.abc import Callable

import numpy as np
import torch
from torch.nn import functional

from parnassus.atlas import Evidence, all_of, claim, close, rate
from parnassus.autodiff.activations_and_losses import gelu, leaky_relu, relu, sigmoid, squared_error
from parnassus.autodiff.derivative_rules import Array, elementwise
from parnassus.autodiff.finite_differences import numerical_gradient
from parnassus.autodiff.graph import Symbol, forward_pass
from parnassus.autodiff.graph_layout import layout_graph
from parnassus.autodiff.operations import cos, sin, tanh, total, transpose
from parnassus.autodiff.paths import all_paths, count_edges, derivative_by_accumulation, derivative_by_paths
from parnassus.autodiff.tape import Variable, gradients, tape_bytes, value_and_gradients
from parnassus.autodiff.two_layer_backpropagation import propagate_backward, propagate_forward
from parnassus.autodiff.two_neuron_network import TwoNeuronNetwork, two_neuron_network

ACTIVATIONS: dict[str, tuple[Callable[[Variable], Variable], Callable[[torch.Tensor], torch.Tensor]]] = {
    "sigmoid": (sigmoid, torch.sigmoid),
    "tanh": (tanh, torch.tanh),
    "relu": (relu, torch.relu),
    "leaky_relu": (leaky_relu, functional.leaky_relu),
    "gelu": (gelu, functional.gelu),
    "step": (
        elementwise("step", lambda x: np.where(x > 0, 1.0, 0.0), lambda _y, x: 0 * x),
        lambda x: (x > 0).to(x.dtype) + 0 * x,  # + 0 * x gives torch a gradient of 0
    ),
}
X, W1, W2 = 0.7, 1.3, -0.8


def toy_network(sigma: Callable[[Variable], Variable] = sigmoid) -> TwoNeuronNetwork[Variable]:
    return two_neuron_network(Variable(X), Variable(W1), Variable(W2), sigma)


@claim("B2.1-3", "Z5.7")
def a_forward_pass_computes_every_node() -> Evidence:
    """z_i = w_i x, h_i = σ(z_i), y = h₁ + h₂: tape and graph store the same eight values (book fig. 2.1)."""
    logistic = [1 / (1 + np.exp(-w * X)) for w in (W1, W2)]
    by_hand = np.array([X, W1, W2, W1 * X, W2 * X, *logistic, sum(logistic)])
    tape = toy_network()
    graph = two_neuron_network(Symbol("x"), Symbol("w1"), Symbol("w2"))
    values = forward_pass([graph.y], {graph.x: X, graph.w1: W1, graph.w2: W2})
    names = {node: str(number) for number, node in enumerate(tape.names)}
    layout = layout_graph(tape.y, names=names, value=lambda _: "", edge=lambda *_: "")
    drawn = sorted(layout.nodes, key=lambda node: int(node.label))
    arrows = sorted([int(layout.nodes[end].label) for end in (edge.start, edge.end)] for edge in layout.edges)
    return all_of(
        tape=close(np.array([float(node.value) for node in tape.names]), by_hand, rtol=1e-13),
        graph=close(np.array([float(values[node]) for node in graph.names]), by_hand, rtol=1e-13),
        columns=close(np.array([node.x for node in drawn]), np.array([0, 0, 0, 1, 1, 2, 2, 3])),
        arrows=close(np.array(arrows), np.array([[0, 3], [0, 4], [1, 3], [2, 4], [3, 5], [4, 6], [5, 7], [6, 7]])),
    )


@claim("B2.1-4")
def derivatives_are_sums_over_paths_of_products() -> Evidence:
    """∂y/∂w₁ = σ′(z₁) x and ∂y/∂x = σ′(z₁) w₁ + σ′(z₂) w₂, along one path and along two (book eq. 2.3)."""
    net = toy_network()
    one, two = (float(h.value * (1 - h.value)) for h in (net.h1, net.h2))
    formula = np.array([one * X, two * X, one * W1 + two * W2])
    inputs = (net.w1, net.w2, net.x)
    return all_of(
        paths=close(np.array([derivative_by_paths(node, net.y) for node in inputs]), formula, rtol=1e-13),
        accumulation=close(np.array([derivative_by_accumulation(node, net.y) for node in inputs]), formula, rtol=1e-13),
        backward_pass=close(np.array(gradients(net.y, inputs)), formula, rtol=1e-13),
        path_counts=close(np.array([len(list(all_paths(node, net.y))) for node in inputs]), np.array([1, 1, 2])),
    )


@claim("B2.1-4")
def backpropagation_equals_torch_for_every_activation() -> Evidence:
    """The toy network's three derivatives equal torch's and central differences for six activations (book sec. 2.1)."""
    point = np.array([X, W1, W2])
    parts = {}
    for name, (activation, torch_activation) in ACTIVATIONS.items():
        net = toy_network(activation)
        by_paths = np.array([derivative_by_paths(node, net.y) for node in (net.x, net.w1, net.w2)])
        x, w1, w2 = leaves = [torch.tensor(each, dtype=torch.float64, requires_grad=True) for each in point]
        expected = torch.stack(torch.autograd.grad(torch_activation(w1 * x) + torch_activation(w2 * x), leaves))

        def value(p: Array, activation: Callable[[Variable], Variable] = activation) -> Array:
            return two_neuron_network(Variable(p[0]), Variable(p[1]), Variable(p[2]), activation).y.value

        parts[f"{name}_torch"] = close(by_paths, expected, rtol=1e-13)
        parts[f"{name}_differences"] = close(numerical_gradient(value, point), by_paths, rtol=1e-8, atol=1e-9)
    return all_of(**parts)


@claim("B2.1-4")
def paths_grow_exponentially_and_edges_linearly() -> Evidence:
    """A chain of n forks has 2ⁿ paths but 4n edges, and both give the same derivative (book sec. 2.1)."""
    depths = np.array([2, 4, 6, 8, 10])
    counts, edges, derivatives = [], [], []
    for depth in depths:
        start = Variable(0.4)
        end = start
        for _ in range(depth):
            end = sin(end) + cos(end)
        counts.append(len(list(all_paths(start, end))))
        edges.append(count_edges(end))
        derivatives.append((derivative_by_paths(start, end), derivative_by_accumulation(start, end)))
    by_paths, by_edges = np.array(derivatives).T
    return all_of(
        paths=close(np.array(counts), 2**depths),
        edges=close(np.array(edges), 4 * depths),
        same_derivative=close(by_paths, by_edges, rtol=1e-12),
    )


@claim("Z5.7")
def stored_values_suffice_for_the_backward_pass() -> Evidence:
    """The backward pass evaluates no activation again and gives the same gradient as torch (Zhao sec. 5)."""
    calls = []

    def recorded_tanh(x: Array) -> Array:
        calls.append(x.shape)
        return np.asarray(np.tanh(x))

    phi = elementwise("tanh", recorded_tanh, lambda y, _x: 1 - y * y)
    source = np.random.default_rng(0)
    weights = [source.normal(size=(6, 6)) for _ in range(5)]
    h = Variable(source.normal(size=(3, 6)))
    variables = [Variable(weight) for weight in weights]
    out = h
    for weight in variables:
        out = phi(out @ weight)
    forward = len(calls)
    by_tape = gradients(total(out * out), variables)
    tensors = [torch.from_numpy(weight).requires_grad_() for weight in weights]
    torch_out = torch.from_numpy(h.value)
    for tensor in tensors:
        torch_out = (torch_out @ tensor).tanh()
    expected = torch.autograd.grad(torch_out.square().sum(), tensors)
    return all_of(
        forward_calls=close(forward, 5),
        backward_calls=close(len(calls) - forward, 0),
        gradient=close(np.stack(by_tape), torch.stack(expected), rtol=1e-11, atol=1e-13),
    )


@claim("Z5.7")
def memory_is_linear_in_depth_and_batch_size() -> Evidence:
    """The memory of a forward pass is proportional to depth and to batch size (Zhao sec. 5)."""

    def stored_bytes(depth: int, batch: int) -> int:
        """Bytes of the values after the input, without weights."""
        weight = np.eye(8)
        out = start = Variable(np.ones((batch, 8)))
        for _ in range(depth):
            out = tanh(out @ weight)
        return tape_bytes(out) - start.value.nbytes

    sizes = [1, 2, 4, 8, 16, 32]
    return all_of(
        depth=rate(np.array(sizes), np.array([stored_bytes(size, 4) for size in sizes]), 1.0, atol=1e-9),
        batch=rate(np.array(sizes), np.array([stored_bytes(4, size) for size in sizes]), 1.0, atol=1e-9),
        two_arrays_per_layer=close(stored_bytes(5, 3), 5 * 2 * 3 * 8 * 8),
    )


@claim("Z5.8", "Z5.7")
def the_backward_pass_by_hand_equals_the_tape() -> Evidence:
    """∂J/∂W₂ = (∂J/∂o) hᵀ + λW₂ and ∂J/∂W₁ = ((W₂ᵀ ∂J/∂o) ⊙ φ′(z)) xᵀ + λW₁, three ways (Zhao sec. 5)."""
    source = np.random.default_rng(1)
    x, w1, w2 = source.normal(size=(7, 4)), source.normal(size=(5, 4)), source.normal(size=(3, 5))
    target, penalty = source.normal(size=(7, 3)), 0.3

    values = propagate_forward(x, w1, w2, np.tanh)
    output_gradient = 2 * (values.o - target) / len(x)
    by_hand = propagate_backward(
        values, output_gradient, w1, w2, phi_derivative=lambda z: 1 - np.tanh(z) ** 2, penalty=penalty
    )

    def loss(w1: Variable, w2: Variable) -> Variable:
        out = tanh(x @ transpose(w1)) @ transpose(w2)
        return squared_error(out, target) + (total(w1 * w1) + total(w2 * w2)) * (penalty / 2)

    value, by_tape = value_and_gradients(loss, w1, w2)
    tensors = [torch.from_numpy(each).requires_grad_() for each in (w1, w2)]
    out = (torch.from_numpy(x) @ tensors[0].T).tanh() @ tensors[1].T
    objective = (out - torch.from_numpy(target)).square().sum() / 7
    objective = objective + penalty / 2 * (tensors[0].square().sum() + tensors[1].square().sum())
    by_torch = torch.autograd.grad(objective, tensors)
    return all_of(
        first_by_tape=close(by_hand[0], by_tape[0], rtol=1e-12, atol=1e-14),
        second_by_tape=close(by_hand[1], by_tape[1], rtol=1e-12, atol=1e-14),
        first_by_torch=close(by_hand[0], by_torch[0], rtol=1e-12, atol=1e-14),
        second_by_torch=close(by_hand[1], by_torch[1], rtol=1e-12, atol=1e-14),
        objective=close(value, objective.detach(), rtol=1e-14),
    )
