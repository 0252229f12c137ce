"""The doctor on networks that are right, on the known ones that are not, and on ones with a single thing wrong."""

import dataclasses
import json

import numpy as np
import pytest

from uniphase.diagnosis.chain import LayerReading, draw_chain, evaluate_chain
from uniphase.diagnosis.examination import _sample, examine, require_same_function
from uniphase.diagnosis.report import Report
from uniphase.initialization.moments import Moments, estimate_moments
from uniphase.initialization.schemes import relu, sm20, uniform_phase
from uniphase.signals.datasets import load
from uniphase.signals.fields import Grid, Points

PHOTO = load("camera", size=128)
MOMENTS = estimate_moments(PHOTO)
COLORS = load("astronaut", size=32)
SIREN = {"omega": 30.0, "hidden_omega": 30.0, "official_output": True}


def right_network(seed: int = 0, *, width: int = 64, depth: int = 3, moments: Moments = MOMENTS) -> list[LayerReading]:
    return draw_chain(uniform_phase(moments, width=width, depth=depth), np.random.default_rng(seed))


def severities(report: Report) -> dict[str, str]:
    return {finding.item: finding.severity for finding in report.findings}


def words(report: Report, item: str) -> str:
    return next(finding.words for finding in report.findings if finding.item == item)


@pytest.mark.parametrize("seed", range(20))
def test_a_uniform_phase_network_is_clean(seed):
    """Seven findings on twenty networks, each wrong once in 20,000: the test fails by chance with probability 0.007."""
    report = examine(right_network(seed, width=16, depth=2), PHOTO, MOMENTS, seed=seed)
    assert report.healthy, str(report)
    assert report.fix is None


@pytest.mark.parametrize(("width", "depth"), [(8, 0), (8, 5), (260, 1)])
def test_so_are_narrow_deep_and_wide_ones_with_several_channels(width, depth):
    """260 is beyond the width of the references."""
    moments = estimate_moments(COLORS)
    report = examine(right_network(width=width, depth=depth, moments=moments), COLORS)
    assert report.healthy, str(report)


def test_siren_on_a_photo():
    """ω₀ = 30 fits photos of this size; with ω_h = 1 the hidden layers amplify, and all of the output is too small or
    too large for the data."""
    network = draw_chain(sm20((2, 1), width=64, depth=8, omega=30.0), np.random.default_rng(0))
    report = examine(network, PHOTO, MOMENTS)
    assert severities(report)["input layer"] == "ok"
    assert severities(report)["phases"] == "warn"
    # CVP26: σ_g = 1 + e⁻² = 1.135 while preactivations have the variance 1, and a little more as they settle at 0.8
    assert words(report, "Jacobian").startswith("mean squared singular value grows 1.")
    rate = float(words(report, "Jacobian").split()[5].rstrip("×"))
    assert 1.1 < rate < 1.3
    assert report.looks_like == "sm20 (SIREN) with ω₀ = 30 and ω_h = 1"
    blueprint = "uniphase.uniform_phase(moments, width=64, depth=8, output_scale=0.05)"
    assert report.fix == f"model = uniphase.CoordinateMLP({blueprint}, key=key)"


def test_the_official_siren_on_a_photo():
    """Its biases, times 30, spread the phases: the hidden layers keep their size. Its output is 1/30 for any data."""
    report = examine(draw_chain(sm20((2, 1), width=64, depth=3, **SIREN), np.random.default_rng(0)), PHOTO, MOMENTS)
    found = severities(report)
    assert (found["Jacobian"], found["gradients"], found["input layer"]) == ("ok", "ok", "ok")
    assert found["output covariance"] == "ok"  # it starts small, as that of a default fit does
    assert float(words(report, "output covariance").split()[4].rstrip("×")) < 0.5
    assert report.looks_like == "siren with ω = 30"


def test_siren_on_sound():
    """On [-100, 100] its first layer has the frequency 30/√3, where this sound has 137, as Bach's does."""
    time = np.linspace(-100, 100, 20_000)
    sound = Grid(0.2 * np.sin(137 * time)[:, None], extents=(-100.0, 100.0), align="corners", medium="sound")
    report = examine(draw_chain(sm20((1, 1), width=64, depth=3, **SIREN), np.random.default_rng(0)), sound)
    assert severities(report)["input layer"] == "bad"
    assert words(report, "input layer").endswith("× too low for this signal: fine detail will be learned late")
    finding = next(finding for finding in report.findings if finding.item == "input layer")
    seen = 137 * np.sinc(137 * 0.01 / np.pi)  # by the differences between samples 0.02 apart
    # 64 uniform weights have their spread to √(0.8/64)/2 = 5.6 %.
    assert finding.value == pytest.approx(30 / np.sqrt(3) / seen, rel=5 * 0.056)  # five standard errors


def test_a_relu_network():
    report = examine(draw_chain(relu((2, 1), width=64, depth=3), np.random.default_rng(0)), PHOTO, MOMENTS)
    found = severities(report)
    assert "phases" not in found
    assert (found["Jacobian"], found["input layer"], found["structure tensor"]) == ("ok", "bad", "bad")
    assert "too low for this signal" in words(report, "input layer")
    assert report.looks_like == "relu"


def scaled(layers: list[LayerReading], index: int, scale: float) -> list[LayerReading]:
    changed = dataclasses.replace(layers[index], weight=scale * layers[index].weight)
    return [changed if layer is layers[index] else layer for layer in layers]


def test_each_fault_is_found_where_it_is():
    network = right_network(width=48)
    low = examine(scaled(network, 0, 0.25), PHOTO, MOMENTS)
    found = severities(low)
    assert (found["input layer"], found["structure tensor"]) != ("ok", "ok")
    assert [found[item] for item in ("phases", "Jacobian", "gradients")] == ["ok"] * 3
    factor = float(words(low, "input layer").split()[1].rstrip("×"))
    assert factor == pytest.approx(4, rel=0.5)  # five standard errors: 48 Normal weights have their spread to 1/√96
    amplified = network
    for index in (1, 2, 3):
        amplified = scaled(amplified, index, 1.7)
    found = severities(examine(amplified, PHOTO, MOMENTS))
    assert (found["Jacobian"], found["input layer"]) == ("bad", "ok")
    assert found["gradients"] != "ok"
    loud = examine(scaled(network, -1, 20.0), PHOTO, MOMENTS)
    assert severities(loud) == {**severities(examine(network, PHOTO, MOMENTS)), **severities(loud)}
    assert severities(loud)["output covariance"] == "bad"
    assert severities(loud)["structure tensor"] == "ok"  # slopes are per spread


def test_an_offset_output_and_a_dead_one():
    network = right_network()
    offset = [*network[:-1], dataclasses.replace(network[-1], bias=network[-1].bias + 3.0)]
    assert severities(examine(offset, PHOTO, MOMENTS))["output mean"] == "bad"
    dead = examine(scaled(network, -1, 0.0), PHOTO, MOMENTS)
    assert dead.healthy  # it starts at the mean, as some initialize their networks
    assert {"gradients", "structure tensor"}.isdisjoint(severities(dead))
    json.dumps(dead.to_dict(), allow_nan=False)


def test_the_same_seed_gives_the_same_report():
    network = right_network(width=8, depth=1)
    first, second = (examine(network, PHOTO, MOMENTS, seed=3).to_dict() for _ in range(2))
    assert first == second
    assert first != examine(network, PHOTO, MOMENTS, seed=4).to_dict()


@pytest.mark.parametrize("field", [PHOTO, COLORS, Points(np.arange(90.0).reshape(30, 3), np.arange(30.0))])
def test_samples_are_those_of_the_field(field):
    positions, values = _sample(field, 50, np.random.default_rng(0))
    assert len(positions) == min(50, field.samples)
    known = {tuple(row) for row in np.concatenate([field.coordinates(), field.flat_values()], axis=1)}
    assert {tuple(row) for row in np.concatenate([positions, values], axis=1)} <= known


@pytest.mark.parametrize(("depth", "correlation"), [(0, 0.0), (2, np.exp(np.exp(-1) - 1))])
def test_outputs_of_distant_positions_are_correlated_by_depth(depth, correlation):
    """Why a right network varies less over its domain than the data: as docs/doctor.md says, in the limit of width."""
    networks, apart, rng = 400, np.array([[-1.0, -1.0], [1.0, 1.0]]), np.random.default_rng(0)
    blueprint = uniform_phase(MOMENTS, width=32, depth=depth)
    outputs = [evaluate_chain(draw_chain(blueprint, rng), apart)[:, 0] for _ in range(networks)]
    product = np.prod(np.array(outputs) - MOMENTS.mean, axis=1) / MOMENTS.covariance[0, 0]
    # five standard errors, and 1/32 for the width
    assert abs(product.mean() - correlation) < 5 * product.std() / np.sqrt(networks) + 1 / 32


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        (right_network()[:1], "layers has 1 entries; a network has an input and an output layer"),
        (right_network()[1:], "hidden 1 takes 64 inputs, but the field's coordinates are 2; pass the network's own"),
        (
            [*right_network()[:2], right_network(width=8)[-1]],
            "output takes 8 inputs, but the outputs of hidden 1 are 64",
        ),
        (right_network()[:-1], "the network has 64 channels, but the field has 1"),
    ],
)
def test_networks_that_do_not_fit(layers, message):
    with pytest.raises(ValueError, match=message):
        examine(layers, PHOTO, MOMENTS)


def test_moments_of_another_field():
    with pytest.raises(ValueError, match="moments are of 2 coordinates and 3 channels, but the field has 2 and 1"):
        examine(right_network(), PHOTO, estimate_moments(COLORS))


def test_a_reading_must_be_the_model():
    network = right_network()
    missing = scaled(network, 1, 0.0)

    def model(positions):
        return evaluate_chain(network, positions)

    require_same_function(network, PHOTO, model)
    with pytest.raises(ValueError, match=r"the layers read from the model are not all of it: input \(sine, omega 1\)"):
        require_same_function(missing, PHOTO, model)
