import numpy as np
import pytest

from uniphase.diagnosis.findings import find, find_fit
from uniphase.diagnosis.measurements import LayerMeasurement

RNG = np.random.default_rng(0)


def row(name: str, resultant: float | None, squared_slope: float = 0.5, width: int = 8) -> LayerMeasurement:
    numbers = {key: 1.0 for key in ("preactivation_std", "squared_singular", "weight_gradient", "backward")}
    return LayerMeasurement(
        name=name,
        activation="sine",
        out_size=width,
        resultant=resultant,
        second_resultant=0.0,
        squared_slope=squared_slope,
        squared_singular_from_first=1.0,
        bias_gradient=None,
        phases=None,
        **numbers,
    )


LAYERS = [row("input", 0.0), row("hidden 1", 0.9), row("hidden 2", 0.0), row("output", None)]


def judge(item: str, values: list[float], *, center: float = 1.0, spread: float = 0.02, layers=LAYERS):
    """The verdict on one statistic, beside references with the given center and relative spread."""
    references = [{item: center * np.exp(spread * RNG.normal(size=len(values)))} for _ in range(24)]
    return find(layers, {item: np.array(values)}, references)[0]


ITEMS = ("Jacobian", "gradients", "input layer", "structure tensor", "output covariance")


@pytest.mark.parametrize(
    ("value", "spread", "severities"),
    [
        (1.05, 0.02, ["ok"] * 5),  # within the references
        (1.4, 0.02, ["ok"] * 5),  # beyond them, but it makes no difference
        (1.6, 0.02, ["warn"] * 5),
        (4.4, 0.02, ["warn", "bad", "bad", "bad", "bad"]),
        (11.0, 0.02, ["bad"] * 5),
        (4.4, 1.0, ["ok"] * 5),  # large, but so are references
        (0.6, 0.02, ["warn", "warn", "warn", "warn", "ok"]),
        (0.2, 0.02, ["warn", "warn", "bad", "bad", "ok"]),
        (1e-4, 0.02, ["warn", "warn", "bad", "bad", "ok"]),  # an output may start as small as it likes
    ],
)
def test_a_factor_must_be_beyond_chance_and_matter(value, spread, severities):
    """Limits by item and direction: those of docs/doctor.md."""
    assert [judge(item, [value], spread=spread).severity for item in ITEMS] == severities


def test_a_factor_is_right_where_references_are_at_one_and_between():
    for value in (0.4, 0.5, 0.7, 1.0, 1.2):
        assert judge("structure tensor", [value], center=0.5, spread=0.05).severity == "ok"
    assert judge("output covariance", [2.0], center=0.5).words.startswith("spread over the domain 2× too wide")


def test_the_worst_direction_decides():
    finding = judge("input layer", [0.125, 1.0], spread=1e-6)
    assert finding.words == "frequencies 8× too low for this signal: fine detail will be learned late"
    assert finding.value == pytest.approx(0.125)
    assert finding.severity == "bad"
    assert judge("input layer", [1.0, 3.0], spread=1e-6).words.startswith("frequencies 3× too high")


def test_growth_is_told_by_the_layer():
    words = judge("gradients", [2.25], spread=1e-6).words  # through two hidden layers
    assert words == "grow 1.5× a layer in the backward pass, 2.2× in all: the first layers change the most"
    assert judge("Jacobian", [0.25]).words.startswith("mean squared singular value shrinks 0.5× a layer, 0.25× in all")


def phases(resultants: list[float], *, width: int = 256, squared_slope: float = 0.5):
    layers = [row(f"layer {i}", r, squared_slope, width) for i, r in enumerate(resultants)]
    return find([*layers, LAYERS[-1]], {"phases": np.array(resultants)}, [])[0]


@pytest.mark.parametrize(("squared_slope", "words"), [(0.9, "almost linear"), (0.1, "slopes vanish"), (0.5, "unused")])
def test_bunched_phases_are_told_with_their_layer(squared_slope, words):
    finding = phases([0.8, 0.9], squared_slope=squared_slope)
    assert finding.severity == "warn"  # networks without any biases train as well
    assert finding.words.startswith("bunched, most in layer 1 (resultant 0.85 over all layers, ")
    assert words in finding.words


def test_phases_must_be_beyond_chance_and_matter():
    assert phases([0.2, 0.2, 0.2], width=10_000).severity == "ok"  # beyond chance, and no matter
    assert phases([0.6, 0.6], width=256).severity == "warn"
    assert phases([0.6, 0.6], width=8).severity == "ok"  # eight phases do that by chance


@pytest.mark.parametrize("layers", [1, 4])
def test_the_bound_on_phases_is_kept_by_uniform_ones_and_not_far(layers):
    """At one position, where it is closest: n = 64 phases in each layer, 20,000 networks."""
    turns = np.exp(2j * np.pi * RNG.random((20_000, layers, 64)))
    squares = np.maximum(0, (64 * np.abs(turns.mean(axis=-1)) ** 2 - 1) / 63)
    resultants = np.sqrt(squares.mean(axis=1))
    bound = phases([0.0] * layers, width=64).high
    # one of them is expected beyond the bound; more than 8 have a probability below 1e-6 (Poisson)
    assert np.count_nonzero(resultants > bound) <= 8
    assert np.count_nonzero(resultants > 0.6 * bound) > 8


def test_the_output_mean_may_stray_as_references_do():
    assert judge("output mean", [1.2]).severity == "ok"
    assert (
        judge("output mean", [2.0]).words
        == "2 standard deviations from the data's: the first steps only correct the offset"
    )
    assert judge("output mean", [2.0], center=3.0).severity == "ok"


def test_an_offset_is_bad_from_four_standard_deviations():
    assert [judge("output mean", [value]).severity for value in (3.5, 4.5)] == ["warn", "bad"]


@pytest.mark.parametrize(
    ("noise", "words"),
    [
        (0.4, "explains 84 % of the signal's variance (SNR 8.0 dB): the network is trained, and"),
        (0.01, "explains 99.99 % of the signal's variance (SNR 40.0 dB): the network is trained, and"),
        (0.6, None),
    ],
)
def test_a_network_that_fits_gets_its_error(noise, words):
    values = RNG.normal(size=(1000, 1))
    values /= values.std()
    finding = find_fit(values + noise * np.sign(RNG.normal(size=(1000, 1))), values)
    assert (finding is None) == (words is None)
    if words is not None:
        assert finding.words.startswith(words)
        assert (finding.severity, finding.value) == ("ok", pytest.approx(noise**2))


def test_what_a_network_has_not_is_not_judged():
    references = [{"Jacobian": np.ones(1)}] * 2
    assert find(LAYERS[:1] + LAYERS[-1:], {"phases": np.array([]), "Jacobian": np.ones(1)}, references) == ()
