"""Initializers in modules of Flax, Haiku and Equinox, as their users write them."""

import inspect
import re
import textwrap

import equinox as eqx
import flax.linen
import haiku
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import uniphase
from helpers.monte_carlo import draw_ensemble, moment_excesses, moment_statistics
from uniphase.initialization.layers import plan_layer
from uniphase.initialization.moments import prescribe_moments
from uniphase.initialization.schemes import SCHEMES, get_scheme
from uniphase.jax import initializers
from uniphase.jax.initializers import sm20, tanh_pe, uniform_phase
from uniphase.jax.network import draw

MOMENTS = prescribe_moments(
    mean=[1.0, -2.0, 0.5],
    covariance=[[2.0, 0.9, -0.3], [0.9, 1.0, 0.2], [-0.3, 0.2, 0.5]],
    structure_tensor=[[300.0, -120.0], [-120.0, 90.0]],
)
KEY = jax.random.key(0)
WIDTHS = (8, 4, 3)
ROLES = ("input", "hidden", "output")
Inits = tuple[initializers.LayerInitializers, ...]


def inits(omegas, **options) -> Inits:
    return tuple(uniform_phase(r, MOMENTS, omega=w, **options) for r, w in zip(ROLES, (*omegas, 1.0), strict=True))


# The same network in four libraries: for a key, a function of one position. It has three layers, of unequal widths.


class Linen(flax.linen.Module):
    omegas: tuple[float, ...]
    inits: Inits

    @flax.linen.compact
    def __call__(self, x):
        for width, omega, init in zip(WIDTHS[:-1], self.omegas, self.inits[:-1], strict=True):
            x = jnp.sin(omega * flax.linen.Dense(width, **init._asdict())(x))
        return flax.linen.Dense(WIDTHS[-1], **self.inits[-1]._asdict())(x)


def linen(key, omegas, inits):
    model = Linen(omegas, inits)
    parameters = model.init(key, jnp.zeros(2))
    return lambda x: model.apply(parameters, x)


class Nnx(nnx.Module):
    def __init__(self, omegas, inits, rngs):
        sizes = zip((2, *WIDTHS[:-1]), WIDTHS, inits, strict=True)
        self.layers = nnx.List([nnx.Linear(n, m, **init._asdict(), rngs=rngs) for n, m, init in sizes])
        self.omegas = omegas

    def __call__(self, x):
        for layer, omega in zip(self.layers[:-1], self.omegas, strict=True):
            x = jnp.sin(omega * layer(x))
        return self.layers[-1](x)


def nnx_module(key, omegas, inits):
    return Nnx(omegas, inits, nnx.Rngs(params=key))


def with_haiku_key(init):
    return lambda shape, dtype: init(haiku.next_rng_key(), shape, dtype)


def haiku_module(key, omegas, inits):
    def forward(x):
        for width, omega, init in zip(WIDTHS, (*omegas, None), inits, strict=True):
            x = haiku.Linear(width, w_init=with_haiku_key(init.kernel_init), b_init=with_haiku_key(init.bias_init))(x)
            x = x if omega is None else jnp.sin(omega * x)
        return x

    model = haiku.without_apply_rng(haiku.transform(forward))
    parameters = model.init(jax.random.key_data(key), jnp.zeros(2))
    return lambda x: model.apply(parameters, x)


def equinox_module(key, omegas, inits):
    layers = []
    for n, m, omega, init in zip((2, *WIDTHS[:-1]), WIDTHS, (*omegas, None), inits, strict=True):
        key, weight_key, bias_key = jax.random.split(key, 3)
        layer = eqx.nn.Linear(n, m, key=key)
        arrays = init.kernel_init(weight_key, layer.weight.shape), init.bias_init(bias_key, layer.bias.shape)
        layers.append(eqx.tree_at(lambda layer: (layer.weight, layer.bias), layer, arrays))
        layers += [] if omega is None else [eqx.nn.Lambda(lambda z, omega=omega: jnp.sin(omega * z))]
    return eqx.nn.Sequential(layers)


LIBRARIES = {"linen": linen, "nnx": nnx_module, "haiku": haiku_module, "equinox": equinox_module}
AXES = {"equinox": {"in_axis": -1, "out_axis": -2}}


def excesses(library: str, omegas, inits: Inits) -> tuple[float, float, float]:
    def statistic(key):
        return moment_statistics(LIBRARIES[library](key, omegas, inits), jnp.array([0.3, -0.7]), MOMENTS)

    return moment_excesses(draw_ensemble(statistic, networks=10_000), MOMENTS)


@pytest.mark.parametrize(
    ("library", "omegas"),
    [
        ("linen", (1.0, 1.0)),
        ("linen", (30.0, 2.0)),
        ("nnx", (30.0, 30.0)),
        ("haiku", (5.0, 1.0)),
        ("equinox", (30.0, 2.0)),
    ],
)
def test_moments_are_matched_in_modules_of_every_library(library, omegas):
    """E f = μ, Cov f = Σ and E ∇fᵀΣ⁻¹∇f = Ω, with correlated channels and an anisotropic Ω."""
    assert max(excesses(library, omegas, inits(omegas, **AXES.get(library, {})))) < 1


def test_an_omega_that_is_not_divided_out_is_caught():
    mean, covariance, structure_tensor = excesses("linen", (30.0, 2.0), inits((1.0, 1.0)))
    assert structure_tensor > 2
    assert max(mean, covariance) < 1  # the phases are uniform whatever the ω


def test_exchanged_fans_are_caught():
    first, _, last = inits((1.0, 1.0))
    exchanged = uniform_phase("hidden", in_axis=-1, out_axis=-2)
    assert excesses("linen", (1.0, 1.0), (first, exchanged, last))[2] > 2


# Laws and arguments.


@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize("role", ROLES)
def test_every_scheme_has_the_laws_of_its_blueprint(name, role):
    """To the bit, as the random numbers are the same."""
    function = getattr(initializers, get_scheme(name).blueprint.__name__)
    blueprint = get_scheme(name).blueprint(MOMENTS, width=16, depth=2)
    plan = next(plan for plan in blueprint.layers if plan.role == role)
    omega = blueprint.layers[-2].omega if role == "output" else plan.omega
    init = function(role, MOMENTS, omega=omega, fan_in=plan.columns)
    weight = draw(plan.weight, (plan.rows, plan.columns), jnp.dtype(jnp.float32), KEY)
    np.testing.assert_array_equal(init.kernel_init(KEY, (plan.columns, plan.rows), jnp.float32), weight.T)
    bias = init.bias_init(KEY, (plan.rows,), jnp.float32)
    if plan.bias is None:
        assert not bias.any()
    else:
        np.testing.assert_array_equal(bias, draw(plan.bias, (plan.rows,), jnp.dtype(jnp.float32), KEY))


def test_all_schemes_are_there_and_documented():
    for scheme in SCHEMES.values():
        function = getattr(initializers, scheme.blueprint.__name__)
        assert scheme.summary.splitlines()[0] in inspect.getdoc(function)


@pytest.mark.parametrize("axes", [{}, {"in_axis": 0, "out_axis": 1}, {"in_axis": -1, "out_axis": -2}], ids=str)
def test_the_same_key_gives_the_same_function_in_both_layouts(axes):
    expected = uniform_phase("input", MOMENTS).kernel_init(KEY, (2, 16))
    kernel = uniform_phase("input", MOMENTS, **axes).kernel_init(KEY, (2, 16) if axes.get("in_axis") != -1 else (16, 2))
    np.testing.assert_array_equal(kernel if kernel.shape == (2, 16) else kernel.T, expected)


def test_omega_divides_kernels_and_biases():
    plain, fast = (uniform_phase("hidden", omega=omega) for omega in (1.0, 32.0))  # a power of 2: exact
    np.testing.assert_array_equal(plain.kernel_init(KEY, (8, 8)), 32 * fast.kernel_init(KEY, (8, 8)))
    np.testing.assert_array_equal(plain.bias_init(KEY, (8,)), 32 * fast.bias_init(KEY, (8,)))


def test_types_and_keys():
    init = uniform_phase("output", MOMENTS)
    assert init.kernel_init(KEY, (8, 3), jnp.bfloat16).dtype == jnp.bfloat16
    assert init.bias_init(KEY, (3,)).dtype == jnp.float32
    old_style = init.kernel_init(jax.random.PRNGKey(0), [8, 3], "float32")  # as Haiku passes both
    np.testing.assert_array_equal(old_style, init.kernel_init(KEY, (8, 3)))


def test_the_pair_is_an_initializer_of_kernels_and_of_biases():
    init = uniform_phase("input", MOMENTS, omega=30.0)
    np.testing.assert_array_equal(init(KEY, (2, 16), jnp.float32), init.kernel_init(KEY, (2, 16), jnp.float32))
    np.testing.assert_array_equal(init(KEY, (16,)), init.bias_init(KEY, (16,)))
    with pytest.raises(ValueError, match="it must be a matrix"):
        init(KEY, (3, 3, 2, 16))
    pair, names = ({"kernel_init": init, "bias_init": init}, init._asdict())
    first, second = (flax.linen.Dense(16, **given).init(KEY, jnp.zeros(2))["params"] for given in (pair, names))
    np.testing.assert_array_equal(first["kernel"], second["kernel"])
    np.testing.assert_array_equal(first["bias"], second["bias"])
    assert first["bias"].any()
    layers = [nnx.Linear(2, 16, **given, rngs=nnx.Rngs(params=KEY)) for given in (pair, names)]
    np.testing.assert_array_equal(layers[0].kernel[...], layers[1].kernel[...])


def test_a_bias_whose_law_depends_on_the_inputs_needs_their_number():
    siren = {"omega": 30.0, "official_output": True}
    with pytest.raises(
        ValueError, match=r"biases of output layers in sm20 depend on the number of inputs.*pass fan_in="
    ):
        sm20("output", **siren).bias_init(KEY, (3,))
    with pytest.raises(ValueError, match="biases of input layers in sm20 depend"):
        sm20("input", omega=30.0).bias_init(KEY, (16,))
    last, first = sm20("output", fan_in=400, **siren), sm20("input", omega=30.0, fan_in=4)
    # The largest of so many uniform numbers is within 1 % of the bound, but for a chance of 4e-5.
    assert np.abs(last.bias_init(KEY, (1000,))).max() == pytest.approx(1 / 20, rel=0.01)
    assert np.abs(first.bias_init(KEY, (1000,))).max() == pytest.approx(1 / 2, rel=0.01)
    np.testing.assert_array_equal(
        sm20("input", MOMENTS, omega=30.0).bias_init(KEY, (16,)),
        sm20("input", omega=30.0, fan_in=2).bias_init(KEY, (16,)),
    )


@pytest.mark.parametrize(
    ("make", "shape", "message"),
    [
        (lambda: uniform_phase("input"), None, "target is .*, but uniform-phase matches the moments of a signal"),
        (lambda: uniform_phase("hidden", omega=0.0), None, "omega is 0.0; it must be positive"),
        (lambda: uniform_phase("hidden", in_axis=-1), None, "in_axis is -1 and out_axis is -1; pass the two axes"),
        (lambda: uniform_phase("hidden", in_axis=2), None, "in_axis is 2 and out_axis is -1"),
        (lambda: initializers.from_scheme("unknown", "hidden"), None, "there is no scheme 'unknown'"),
        (
            lambda: uniform_phase("hidden"),
            (3, 3, 8, 8),
            r"the kernel has the shape \(3, 3, 8, 8\); it must be a matrix",
        ),
        (
            lambda: uniform_phase("input", MOMENTS),
            (16, 2),
            r"kernel of shape \(16, 2\) maps 16 to 2 .*, but input layers of uniform-phase map 2 to 2; pass the role",
        ),
        (lambda: uniform_phase("output", MOMENTS), (16, 1), "output layers of uniform-phase map 16 to 3"),
        (lambda: sm20("hidden"), (8, 16), "hidden layers of sm20 map 8 to 8"),
        (lambda: uniform_phase("output", MOMENTS), (16,), "it must be a matrix"),
    ],
)
def test_what_does_not_fit_is_refused(make, shape, message):
    with pytest.raises(ValueError, match=message):
        make().kernel_init(KEY, shape)


def test_an_unknown_role_is_refused():
    unchecked = inspect.unwrap(initializers.from_scheme)  # in the tests types are checked before
    with pytest.raises(ValueError, match="role is 'middle'; it must be one of input, hidden, output"):
        unchecked("uniform-phase", "middle")


def test_fourier_features_have_half_as_many_rows_as_the_width():
    kernel = tanh_pe("input", omega=1.0, std=3.0).kernel_init(KEY, (2, 8))
    plan = plan_layer(get_scheme("tanh-pe"), "input", (8, 2), options={"std": 3.0})
    weight = draw(plan.weight, (8, 2), jnp.dtype(jnp.float32), KEY)
    np.testing.assert_allclose(kernel, 2 * np.pi * weight.T, rtol=1e-6)  # float32


def run_examples(text: str) -> dict:
    scope = {"uniphase": uniphase, "jax": jax, "jnp": jnp, "flax": flax}
    blocks = re.findall(r"^( *)```python\n(.*?)^\1```", text, re.DOTALL | re.MULTILINE)
    assert blocks
    for _, block in blocks:
        exec(textwrap.dedent(block), scope)
    return scope


def test_examples_run():
    documented = [initializers.from_scheme, initializers.LayerInitializers]
    documented += [getattr(initializers, scheme.blueprint.__name__) for scheme in SCHEMES.values()]
    for function in documented:
        run_examples(inspect.getdoc(function))


def test_the_siren_in_the_documentation():
    siren = run_examples(initializers.__doc__)["Siren"](MOMENTS)
    parameters = siren.init(KEY, jnp.zeros((5, 2)))
    assert siren.apply(parameters, jnp.zeros((5, 2))).shape == (5, 3)
    np.testing.assert_array_equal(parameters["params"]["Dense_3"]["bias"], np.float32(MOMENTS.mean))
