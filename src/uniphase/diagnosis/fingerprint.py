"""Fingerprints: which published initialization a network looks like.

Every array of the network is compared with the distribution that a scheme has for it, by the Kolmogorov–Smirnov test. A
scheme fits if no array rejects it; frequencies and moments that a scheme leaves open are read from the network.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ..initialization.blueprint import LayerPlan
from ..initialization.distributions import ColumnNormal, Constant, Distribution, Normal, RowNormal, Uniform
from ..initialization.moments import Moments
from ..initialization.schemes import OUTPUT_SCALE, SCHEMES, cvp26_0, cvp26_1, siren, sm20, tanh_pe, uniform_phase
from .chain import LayerReading

# How often the true scheme is missed. Wrong ones have p-values that are smaller by many orders of magnitude.
_MISSED = 1e-4
# At most this many entries of an array are tested; more would not change the answer.
_ENTRIES = 1 << 14


class _Candidate(NamedTuple):
    name: str
    layers: Sequence[LayerPlan]


def likeness(layers: Sequence[LayerReading], moments: Moments) -> str | None:
    """The name of the initialization that explains all arrays of a network best, or `None` if none does.

    **Arguments:**

    - `layers`: the network.
    - `moments`: of the signal that it is meant for.

    !!! example
        ```python
        layers = draw_chain(sm20((2, 1), width=64, depth=2, omega=30.0), np.random.default_rng(0))
        likeness(layers, estimate_moments(field))  # "sm20 (SIREN) with ω₀ = 30 and ω_h = 1"
        ```
    """
    best, name = _MISSED, None
    for candidate in _candidates(layers, moments):
        fit = _fit(layers, candidate.layers)
        if fit > best:
            best, name = fit, candidate.name
    return name


def _fit(layers: Sequence[LayerReading], plans: Sequence[LayerPlan]) -> float:
    """Bonferroni's bound: the least p-value of n tests is below p/n with probability p at most."""
    least = 1.0
    for p in _p_values(layers, plans):
        least = min(least, 2 * len(layers) * p)
        if least < _MISSED:
            return 0.0
    return least


def _p_values(layers: Sequence[LayerReading], plans: Sequence[LayerPlan]) -> Iterator[float]:
    """The p-value of each array. Distributions are compared after ω, whether it is in the weights or beside them."""
    for layer, plan in zip(layers, plans, strict=True):
        scale = layer.omega / plan.omega
        same = layer.activation == plan.activation and layer.weight.shape == (plan.rows, plan.columns)
        yield _p_value(scale * layer.weight.astype(np.float64), plan.weight) if same else 0.0
        if layer.bias is None:
            yield float(plan.bias in (None, Constant(0.0)))
        elif plan.bias is None:
            yield float(not layer.bias.any())
        else:
            bias = scale * layer.bias.astype(np.float64)
            wrapped = np.mod(bias + math.pi, 2 * math.pi) - math.pi  # phases on [0, 2π) are as good as on [-π, π)
            yield _p_value(wrapped if plan.bias == Uniform(math.pi) else bias, plan.bias)


def _p_value(array: np.ndarray, distribution: Distribution) -> float:
    from scipy.stats import norm, uniform

    if isinstance(distribution, Constant):
        return float(np.allclose(array, distribution.value, rtol=1e-5, atol=1e-6))  # float32
    if isinstance(distribution, Uniform):
        return _test(array, uniform(-distribution.half_width, 2 * distribution.half_width).cdf)
    if isinstance(distribution, Normal):
        standard = array / distribution.std
    else:
        assert isinstance(distribution, RowNormal | ColumnNormal)
        inverse = np.linalg.pinv(_root(distribution.covariance))
        standard = array @ inverse.T if isinstance(distribution, RowNormal) else inverse @ array
    return _test(standard, norm.cdf)


def _test(array: np.ndarray, cdf: Callable[[np.ndarray], np.ndarray]) -> float:
    from scipy.stats import kstest

    entries = array.ravel()[:: max(1, array.size // _ENTRIES)]
    # the exact test is slow for many entries, where it does not differ from its limit
    return float(kstest(entries, cdf, method="exact" if entries.size < 1000 else "asymp").pvalue)


def _root(covariance) -> np.ndarray:
    values, vectors = np.linalg.eigh(np.asarray(covariance))
    return vectors * np.sqrt(np.clip(values, 0, None))


def _candidates(layers: Sequence[LayerReading], moments: Moments) -> Iterator[_Candidate]:
    sizes, width, depth = (layers[0].weight.shape[1], layers[-1].out_size), layers[-1].weight.shape[1], len(layers) - 2
    if all(layer.out_size == width for layer in layers[:-1]):
        yield from _sine_candidates(layers, moments, sizes, width, depth)
        for name in ("relu", "silu", "gelu"):
            yield _Candidate(name, SCHEMES[name].blueprint(sizes, width=width, depth=depth).layers)
    yield from _plain_candidates(layers)


def _sine_candidates(
    layers: Sequence[LayerReading], moments: Moments, sizes: tuple[int, int], width: int, depth: int
) -> Iterator[_Candidate]:
    first, last = layers[0], layers[-1]
    size = {"width": width, "depth": depth}
    if first.activation == "sincos" and depth >= 1 and width % 2 == 0:
        std = float(first.omega * first.weight.std()) / (2 * math.pi) or 1.0
        yield _Candidate(f"tanh-pe with σ = {std:.3g}", tanh_pe(sizes, width=width, depth=depth - 1, std=std).layers)
        return
    if first.activation != "sine":
        return
    matched = [uniform_phase(moments, **size, output_scale=scale).layers for scale in (1.0, OUTPUT_SCALE)]
    yield from (_Candidate("uniform-phase, matched to this signal", plans) for plans in matched)
    if all(_fit(layers, plans) < _MISSED for plans in matched):
        own = uniform_phase(_own_moments(first, last), **size)
        yield _Candidate("uniform-phase, matched to another signal", own.layers)
    # The input weights are U(±ω/d). An ω that the network does not keep by itself shows in their largest entry.
    omega = first.omega if first.omega != 1 else float(np.abs(first.weight).max()) * sizes[0] or 1.0
    hidden_omega = layers[1].omega if depth else 1.0
    with_omegas = f"with ω₀ = {omega:.4g} and ω_h = {hidden_omega:.4g}"
    for name, scheme in {"sm20 (SIREN)": sm20, "cvp26-0": cvp26_0, "cvp26-1": cvp26_1}.items():
        blueprint = scheme(sizes, **size, omega=omega, hidden_omega=hidden_omega)
        yield _Candidate(f"{name} {with_omegas}", blueprint.layers)
        if scheme is not sm20:  # which is siren then
            blueprint = scheme(sizes, **size, omega=omega, hidden_omega=hidden_omega, official_output=True)
            yield _Candidate(f"{name} {with_omegas}, official output layer", blueprint.layers)
    own = f"with ω = {omega:.4g}" if depth == 0 or omega == hidden_omega else with_omegas
    later = hidden_omega if depth else omega
    yield _Candidate(f"siren {own}", siren(sizes, **size, omega=omega, hidden_omega=later).layers)
    yield _Candidate(f"siren-pytorch {with_omegas}", _siren_pytorch(layers, omega, hidden_omega))


def _own_moments(first: LayerReading, last: LayerReading) -> Moments:
    """The moments that a uniform-phase network with these outer layers is matched to (section 3 of the paper)."""
    w_in, w_out = first.omega * first.weight.astype(np.float64), last.weight.astype(np.float64)
    mean = np.zeros(len(w_out)) if last.bias is None else last.bias.astype(np.float64)
    return Moments(mean, w_out @ w_out.T / 2, len(w_out) * w_in.T @ w_in / len(w_in))


def _siren_pytorch(layers: Sequence[LayerReading], omega: float, hidden_omega: float) -> list[LayerPlan]:
    """The PyTorch package of this name: biases drawn like the weights, and the output layer like a hidden one."""
    bounds = [1 / layers[0].weight.shape[1]]
    bounds += [math.sqrt(6 / layer.weight.shape[1]) / hidden_omega for layer in layers[1:]]
    omegas = [omega, *[hidden_omega] * (len(layers) - 2), 1.0]
    plans = []
    for layer, bound, own_omega in zip(layers, bounds, omegas, strict=True):
        rows, columns = layer.weight.shape
        plans.append(LayerPlan("hidden", rows, columns, layer.activation, Uniform(bound), Uniform(bound), own_omega))
    return plans


def _plain_candidates(layers: Sequence[LayerReading]) -> Iterator[_Candidate]:
    """Distributions that follow from the fans of a layer alone, for any activation."""
    weights = {
        "default of PyTorch and Equinox": lambda fan_in, fan_out: Uniform(1 / math.sqrt(fan_in)),
        "He uniform": lambda fan_in, fan_out: Uniform(math.sqrt(6 / fan_in)),
        "He normal": lambda fan_in, fan_out: Normal(math.sqrt(2 / fan_in)),
        "Xavier uniform": lambda fan_in, fan_out: Uniform(math.sqrt(6 / (fan_in + fan_out))),
        "Xavier normal": lambda fan_in, fan_out: Normal(math.sqrt(2 / (fan_in + fan_out))),
    }
    biases = {
        "": lambda fan_in: Uniform(1 / math.sqrt(fan_in)),
        ", biases at zero": lambda fan_in: Constant(0.0),
    }
    for (name, weight), (suffix, bias) in itertools.product(weights.items(), biases.items()):
        plans = []
        for layer in layers:
            rows, columns = layer.weight.shape
            plans.append(
                LayerPlan("hidden", rows, columns, layer.activation, weight(columns, rows), bias(columns), layer.omega)
            )
        yield _Candidate(f"{name}{suffix}", plans)
