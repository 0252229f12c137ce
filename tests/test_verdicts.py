import numpy as np
import pytest

from uniphase.chains import LayerMeasurement
from uniphase.verdicts import find

RNG = np.random.default_rng(0)


def row(name: str, resultant: float | None, squared_slope: float = 0.5) -> LayerMeasurement:
    numbers = {key: 1.0 for key in ("preactivation_std", "squared_singular", "weight_gradient", "backward")}
    return LayerMeasurement(
        name=name,
        activation="sine",
        out_size=8,
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


@pytest.mark.parametrize(
    ("value", "spread", "severity"),
    [
        (1.05, 0.02, "ok"),  # within the references
        (1.4, 0.02, "ok"),  # beyond them, but it makes no difference
        (1.6, 0.02, "warn"),
        (0.6, 0.02, "warn"),
        (4.4, 0.02, "bad"),
        (0.2, 0.02, "bad"),
        (4.4, 1.0, "ok"),  # large, but so are references
    ],
)
def test_a_factor_must_be_beyond_chance_and_matter(value, spread, severity):
    for item in ("Jacobian", "gradients", "input layer", "output covariance", "structure tensor"):
        assert judge(item, [value], spread=spread).severity == severity


def test_a_factor_is_right_where_references_are_at_one_and_between():
    for value in (0.4, 0.5, 0.7, 1.0, 1.2):
        assert judge("output covariance", [value], center=0.5).severity == "ok"
    assert judge("output covariance", [2.0], center=0.5).words.startswith("spread over the domain 2× too wide")
    assert judge("output covariance", [0.1], center=0.5, spread=1e-6).words.startswith(
        "spread over the domain 5× too narrow"
    )


def test_the_worst_direction_decides():
    finding = judge("input layer", [0.125, 1.0], spread=1e-6)
    assert finding.words == "frequencies 8× too low for this signal: fine detail will be learned late"
    assert finding.value == pytest.approx(0.125)
    assert finding.severity == "bad"
    assert judge("input layer", [1.0, 3.0], spread=1e-6).words.startswith("frequencies 3× too high")


def test_growth_is_told_by_the_layer():
    words = judge("gradients", [2.25], spread=1e-6).words  # through two hidden layers
    assert words == "grow 1.5× a layer on the way back, 2.2× in all: the first layers are moved the most"
    assert judge("Jacobian", [0.25]).words.startswith("mean squared singular value shrinks 0.5× a layer, 0.25× in all")


@pytest.mark.parametrize(("squared_slope", "words"), [(0.9, "almost linear"), (0.1, "slopes vanish"), (0.5, "unused")])
def test_bunched_phases_are_told_by_their_layer(squared_slope, words):
    layers = [row("input", 0.0), row("hidden 1", 0.9, squared_slope), LAYERS[-1]]
    finding = judge("phases", [0.0, 0.9], center=0.05, layers=layers)
    assert finding.severity == "bad"
    assert finding.words.startswith("bunched in hidden 1 (resultant 0.9, ")
    assert words in finding.words
    assert judge("phases", [0.0, 0.2], center=0.05, layers=layers).severity == "ok"  # beyond chance, and no matter


def test_the_output_mean_may_stray_as_references_do():
    assert judge("output mean", [1.2]).severity == "ok"
    assert (
        judge("output mean", [2.0]).words == "2 standard deviations from the data's: the first steps go into the offset"
    )
    assert judge("output mean", [2.0], center=3.0).severity == "ok"


def test_what_a_network_has_not_is_not_judged():
    references = [{"phases": np.ones(1), "Jacobian": np.ones(1)}] * 2
    assert find(LAYERS[:1] + LAYERS[-1:], {"phases": np.array([]), "Jacobian": np.ones(1)}, references) == ()
