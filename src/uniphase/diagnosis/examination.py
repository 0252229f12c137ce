"""The doctor: what is right and wrong with a network for a signal, in numbers and in words.

The theory fixes the expectation of every quantity here over the random draw; a single network deviates from it by
chance, more so if it is narrow. How much chance allows is measured: uniform-phase networks of the same size are drawn
and measured on the same samples, and a finding is what none of them would show (for phases there is a bound). A network
wider than `_WIDTH` is compared with references of that width, which vary more than it would.
"""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float

from ..initialization.moments import Moments, estimate_moments
from ..initialization.schemes import OUTPUT_SCALE, uniform_phase
from ..initialization.squashing import transform_moments
from ..signals.fields import Field, Grid, Points, axis_coordinates
from .chain import LayerReading, draw_chain, evaluate_chain
from .findings import Finding, find, find_fit, statistics
from .fingerprint import likeness
from .measurements import ChainMeasurement, measure_chain
from .report import Report

# The number of samples on which the network is measured, and each reference.
_SAMPLES, _REFERENCE_SAMPLES = 1024, 256
_REFERENCES, _WIDTH = 24, 256


def examine(
    layers: Sequence[LayerReading],
    field: Field,
    moments: Moments | None = None,
    *,
    fix: str | None = None,
    seed: int = 0,
) -> Report:
    """Examine a network of any framework that was read as a chain of layers.

    **Arguments:**

    - `layers`: from the coordinates to the channels.
    - `field`: the signal that the network is meant for.
    - `moments`: of the signal. Default: estimated from the field.
    - `fix`: what to recommend. Default: another network, on the JAX side.
    - `seed`: of the samples, the probes and the references.

    !!! example
        ```python
        blueprint = sm20((2, 1), width=64, depth=2, omega=30.0)
        print(examine(draw_chain(blueprint, np.random.default_rng(0)), field))
        ```
    """
    _require_fitting(layers, field)
    moments = estimate_moments(field) if moments is None else moments
    if (moments.in_size, moments.out_size) != (field.in_size, field.out_size):
        raise ValueError(
            f"moments are of {moments.in_size} coordinates and {moments.out_size} channels, but the field has "
            f"{field.in_size} and {field.out_size}; pass the moments of the field"
        )
    rng = np.random.default_rng(seed)
    positions, values = _sample(field, _SAMPLES, rng)
    measured = measure_chain(layers, positions, values, rng)
    fitted = find_fit(measured.outputs, values)
    findings = (fitted,) if fitted is not None else _findings(layers, measured, moments, (positions, values), rng)
    healthy = all(finding.severity == "ok" for finding in findings)
    return Report(
        layers=measured.layers,
        findings=findings,
        looks_like=likeness(layers, moments),
        fix=None if healthy else fix or replacement(layers, "uniphase.CoordinateMLP", "key=key"),
        network=measured.moments(),
        data=moments,
        samples=len(positions),
    )


def _findings(
    layers: Sequence[LayerReading],
    measured: ChainMeasurement,
    moments: Moments,
    samples: tuple[np.ndarray, np.ndarray],
    rng: np.random.Generator,
) -> tuple[Finding, ...]:
    """The verdicts on a network that was not trained, by comparison with references."""
    positions, values = (part[:_REFERENCE_SAMPLES] for part in samples)
    width, depth = min(layer.out_size for layer in layers[:-1]), len(layers) - 2
    blueprint = uniform_phase(moments, width=min(width, _WIDTH), depth=depth)
    references = [
        statistics(measure_chain(draw_chain(blueprint, rng), positions, values, rng), moments)
        for _ in range(_REFERENCES)
    ]
    return find(measured.layers, statistics(measured, moments), references)


def in_units(
    field: Field, moments: Moments, scale: Float[np.ndarray, " out_size"], shift: Float[np.ndarray, " out_size"]
) -> tuple[Field, Moments]:
    """A signal y and its moments as those of v for which y = scale · v + shift."""
    values = (field.values - shift) / scale
    ones = np.ones(field.in_size)
    inner = transform_moments(moments, ones, 1 / scale, -shift / scale)
    if isinstance(field, Grid):
        return Grid(values, extents=field.extents, align=field.align), inner
    return Points(field.positions, values), inner


def replacement(layers: Sequence[LayerReading], network: str, *arguments: str) -> str:
    """A line of Python that makes a uniform-phase network of the same size, which starts near the mean.

    **Arguments:**

    - `layers`: of the network that is replaced.
    - `network`, `arguments`: what makes a network of a blueprint, and what it takes besides.
    """
    width, omegas = min(layer.out_size for layer in layers[:-1]), {layer.omega for layer in layers[1:-1]}
    blueprint = (
        f"uniphase.uniform_phase(moments, width={width}, depth={len(layers) - 2}, output_scale={OUTPUT_SCALE:g})"
    )
    line = f"model = {network}({', '.join([blueprint, *arguments])})"
    if len(omegas) == 1 and omegas != {1.0}:
        line += f"  # it has no ω: with Adam, use {omegas.pop():g} times the rate for steps of the same size"
    return line


def require_same_function(
    layers: Sequence[LayerReading], field: Field, model: Callable[[np.ndarray], np.ndarray]
) -> None:
    """Check that a chain of layers computes the same as the model that it was read from.

    **Arguments:**

    - `layers`: the chain.
    - `field`: at some of its positions.
    - `model`: maps float32 positions of shape `(samples, in_size)` to values of shape `(samples, out_size)`.

    !!! example
        ```python
        layers = draw_chain(sm20((2, 1), width=8, depth=1), np.random.default_rng(0))
        require_same_function(layers, field, lambda positions: evaluate_chain(layers, positions))
        ```
    """
    _require_fitting(layers, field)
    positions = _sample(field, 64, np.random.default_rng(0))[0].astype(np.float32)
    found, expected = evaluate_chain(layers, positions), np.asarray(model(positions), np.float64)
    if found.shape != expected.shape:
        raise ValueError(f"the model gives values of shape {expected.shape}, but its layers {found.shape}; pass layers")
    error, spread = np.sqrt(np.square(found - expected).mean()), float(expected.std()) or 1.0
    # float32 is off by some thousandths for the phases of sound, which make thousands of turns; a layer that was read
    # wrongly changes everything.
    if not error < 0.05 * spread:
        chain = ", ".join(f"{layer.name} ({layer.activation}, omega {layer.omega:g})" for layer in layers)
        raise ValueError(
            f"the layers read from the model are not all of it: {chain} give values that differ from the model's by "
            f"{error / spread:.2g} of their spread; pass layers={{name: (weight, bias, activation, omega), ...}} in "
            "the order in which the model applies them"
        )


def _require_fitting(layers: Sequence[LayerReading], field: Field) -> None:
    if len(layers) < 2:
        raise ValueError(f"layers has {len(layers)} entries; a network has an input and an output layer; pass both")
    size, owner = field.in_size, "the field's coordinates"
    for layer in layers:
        if layer.weight.shape[1] != size:
            raise ValueError(
                f"{layer.name} takes {layer.weight.shape[1]} inputs, but {owner} are {size}; "
                "pass the network's own field, and its layers in their order"
            )
        size, owner = layer.out_size, f"the outputs of {layer.name}"
    if size != field.out_size:
        raise ValueError(f"the network has {size} channels, but the field has {field.out_size}; make them agree")


def _sample(field: Field, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Positions and values of some samples, without computing those of all."""
    chosen = rng.choice(field.samples, min(count, field.samples), replace=False)
    if not isinstance(field, Grid):
        return field.positions[chosen], field.values[chosen].astype(np.float64)
    index = np.unravel_index(chosen, field.shape)
    axes = zip(index, field.shape, field.extents, strict=True)
    positions = np.stack([axis_coordinates(n, extent, field.align)[i] for i, n, extent in axes], axis=-1)
    return positions, field.values[index].astype(np.float64)
