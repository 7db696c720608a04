"""Two-neuron network: values, derivatives and names of the nodes."""

import numpy as np

from parnassus.autodiff import Variable, gradients, tanh, two_neuron_network


def test_values_and_derivatives_match_hand_computed_values() -> None:
    x, w1, w2 = 0.4, -1.2, 2.5
    net = two_neuron_network(Variable(x), Variable(w1), Variable(w2), tanh)
    assert [float(node.value) for node in (net.z1, net.z2)] == [w1 * x, w2 * x]
    np.testing.assert_allclose(float(net.y.value), np.tanh(w1 * x) + np.tanh(w2 * x))
    slope1, slope2 = (1 - np.tanh(w * x) ** 2 for w in (w1, w2))
    derivatives = [float(each) for each in gradients(net.y, [net.x, net.w1, net.w2])]
    np.testing.assert_allclose(derivatives, [slope1 * w1 + slope2 * w2, slope1 * x, slope2 * x])


def test_nodes_are_named_in_the_order_of_the_forward_pass() -> None:
    net = two_neuron_network(Variable(1.0), Variable(1.0), Variable(1.0))
    assert list(net.names.values()) == [
        "x",
        "w₁",
        "w₂",
        "z₁ = w₁x",
        "z₂ = w₂x",
        "h₁ = σ(z₁)",
        "h₂ = σ(z₂)",
        "y = h₁ + h₂",
    ]
