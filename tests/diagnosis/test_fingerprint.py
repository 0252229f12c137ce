import dataclasses
import itertools
import math

import numpy as np
import pytest

from uniphase.diagnosis.chain import LayerReading, draw_chain
from uniphase.diagnosis.fingerprint import likeness
from uniphase.initialization.blueprint import Blueprint, LayerPlan
from uniphase.initialization.distributions import Constant, Normal, Uniform
from uniphase.initialization.moments import prescribe_moments
from uniphase.initialization.schemes import cvp26_0, cvp26_1, gelu, relu, silu, siren, sm20, tanh_pe, uniform_phase

MOMENTS = prescribe_moments(mean=[0.5], covariance=0.1, length_scale=[0.1, 0.1])
OTHER = prescribe_moments(mean=[0.2], covariance=2.0, length_scale=[0.5, 0.01])
SIZE = {"width": 32, "depth": 2}
OFFICIAL = {"omega": 30.0, "hidden_omega": 30.0, "official_output": True}
KNOWN = [
    (uniform_phase(MOMENTS, **SIZE), "uniform-phase, matched to this signal"),
    (uniform_phase(OTHER, **SIZE), "uniform-phase, matched to another signal"),
    (sm20((2, 1), **SIZE), "sm20 (SIREN) with ω₀ = 82.08 and ω_h = 1"),
    (siren((2, 1), **SIZE), "siren with ω = 30"),
    (siren((2, 1), **SIZE, omega=60.0, hidden_omega=30.0), "siren with ω₀ = 60 and ω_h = 30"),
    (siren((2, 1), width=512, depth=0), "siren with ω = 30"),
    (cvp26_0((2, 1), **SIZE, **OFFICIAL), "cvp26-0 with ω₀ = 30 and ω_h = 30, official output layer"),
    (cvp26_0((2, 1), **SIZE, omega=30.0), "cvp26-0 with ω₀ = 30 and ω_h = 1"),
    (cvp26_1((2, 1), **SIZE, omega=30.0), "cvp26-1 with ω₀ = 30 and ω_h = 1"),
    (relu((2, 1), **SIZE), "relu"),
    (silu((2, 1), **SIZE), "silu"),
    (gelu((2, 1), **SIZE), "gelu"),
]


def plain(weight, bias, activation="sine", widths=(2, 32, 24, 1)) -> Blueprint:
    """A network whose laws go by the fan-in, with layers of different widths."""
    sizes = list(itertools.pairwise(widths))
    kinds = [activation] * (len(sizes) - 1) + ["linear"]
    plans = [LayerPlan("hidden", out, n, kind, weight(n), bias(n)) for (n, out), kind in zip(sizes, kinds, strict=True)]
    return Blueprint("plain", tuple(plans))


KNOWN += [
    (plain(lambda n: Uniform(n**-0.5), lambda n: Uniform(n**-0.5)), "default of PyTorch and Equinox"),
    (plain(lambda n: Normal((2 / n) ** 0.5), lambda n: Constant(0.0), "relu"), "He normal, biases at zero"),
]


@pytest.mark.parametrize(("blueprint", "name"), KNOWN, ids=[name for _, name in KNOWN])
def test_known_initializations_are_told_apart(blueprint, name):
    # The true one is missed once in 10,000 draws, and a wrong one fits better hardly ever at these sizes.
    for seed in range(3):
        assert likeness(draw_chain(blueprint, np.random.default_rng(seed)), MOMENTS) == name


def test_fourier_features_are_told_with_their_spread():
    found = likeness(draw_chain(tanh_pe((2, 1), **SIZE, std=10.0), np.random.default_rng(0)), MOMENTS)
    assert found.startswith("tanh-pe with σ = ")
    assert float(found.split()[-1]) == pytest.approx(10, rel=5 / 8)  # 32 Normal entries have their spread to 1/√64


def test_the_package_siren_pytorch():
    """Biases drawn like the weights, and the output layer like a hidden one."""
    bound = math.sqrt(6 / 32)
    plans = (
        LayerPlan("input", 32, 2, "sine", Uniform(0.5), Uniform(0.5), 30.0),
        LayerPlan("hidden", 32, 32, "sine", Uniform(bound), Uniform(bound)),
        LayerPlan("output", 1, 32, "linear", Uniform(bound), Uniform(bound)),
    )
    for seed in range(3):
        chain = draw_chain(Blueprint("siren-pytorch", plans), np.random.default_rng(seed))
        assert likeness(chain, MOMENTS) == "siren-pytorch with ω₀ = 30 and ω_h = 1"


def test_omega_may_be_in_the_weights_and_phases_on_any_turn():
    first, *rest = draw_chain(sm20((2, 1), **SIZE, omega=30.0), np.random.default_rng(0))
    folded = LayerReading("first", 30 * first.weight, 30 * first.bias, "sine")
    name = likeness([folded, *rest], MOMENTS)
    assert name.startswith("sm20 (SIREN) with ω₀ = ")
    assert float(name.split()[5]) == pytest.approx(30, rel=0.2)  # the largest of 64 uniform entries: 0.8⁶⁴ = 6e-7
    chain = draw_chain(uniform_phase(MOMENTS, **SIZE), np.random.default_rng(0))
    turned = [dataclasses.replace(layer, bias=np.mod(layer.bias, 2 * np.pi)) for layer in chain[:-1]]
    assert likeness([*turned, chain[-1]], MOMENTS) == "uniform-phase, matched to this signal"


@pytest.mark.parametrize("scale", [0.8, 1.25])
def test_a_network_of_nobody_is_like_none(scale):
    chain = draw_chain(uniform_phase(MOMENTS, width=64, depth=2), np.random.default_rng(0))
    chain[1] = dataclasses.replace(chain[1], weight=scale * chain[1].weight)
    assert likeness(chain, MOMENTS) is None


def test_a_network_of_zeros_is_like_none():
    for activation in ("sine", "sincos", "relu"):
        outputs = 16 if activation == "sincos" else 8
        zeros = [
            LayerReading("a", np.zeros((8, 2)), np.zeros(8), activation),
            LayerReading("b", np.zeros((outputs, outputs)), None, "tanh"),
            LayerReading("c", np.zeros((1, outputs)), None, "linear"),
        ]
        assert likeness(zeros, MOMENTS) is None
