import jax
import jax.numpy as jnp
import numpy as np
import pytest

from uniphase.jax.sine import cosine, polynomial_cosine, polynomial_sine, sine

PAIRS = [(sine, np.sin), (cosine, np.cos), (polynomial_sine, np.sin), (polynomial_cosine, np.cos)]


def compile_as_users(function):
    """In the code that users have, with all optimizations: they decide what is contracted, and so rounded."""
    return jax.jit(
        function, compiler_options={"xla_backend_optimization_level": 3, "xla_cpu_use_fusion_emitters": True}
    )


@pytest.mark.parametrize(("function", "exact"), PAIRS)
@pytest.mark.parametrize(("reach", "bound"), [(4, 2e-7), (100, 2e-7), (5_000, 2e-7), (25_000, 2e-6)])
def test_accuracy(function, exact, reach, bound):
    z = np.linspace(-reach, reach, 1_000_003).astype(np.float32)
    error = np.asarray(compile_as_users(function)(z), np.float64) - exact(z.astype(np.float64))
    assert np.abs(error).max() < bound


@pytest.mark.parametrize(("function", "exact"), PAIRS)
def test_multiples_of_a_quarter_turn(function, exact):
    z = jnp.asarray(np.arange(-64, 65) * np.pi / 2, jnp.float32)
    np.testing.assert_allclose(compile_as_users(function)(z), exact(np.asarray(z, np.float64)), rtol=0, atol=2e-7)


@pytest.mark.parametrize("function", [polynomial_sine, polynomial_cosine])
def test_huge_arguments_stay_bounded_and_nan_stays_nan(function):
    z = jnp.array([1e5, -1e7, 1e12, -3e38], jnp.float32)
    function = compile_as_users(function)
    assert (np.abs(function(z)) <= 1).all()
    assert np.isnan(function(jnp.array([jnp.nan, jnp.inf], jnp.float32))).all()


@pytest.mark.parametrize("order", range(1, 6))
def test_derivatives_of_any_order_in_reverse_mode(order):
    derivative = sine
    for _ in range(order):
        derivative = jax.grad(derivative)
    z = np.linspace(-5, 5, 101).astype(np.float32)
    expected = np.sin(z.astype(np.float64) + order * np.pi / 2)
    np.testing.assert_allclose(
        compile_as_users(jax.vmap(derivative))(z), expected, rtol=0, atol=3e-7
    )  # sign flips add no error


def test_forward_over_reverse_under_jit_and_vmap():
    z = jnp.linspace(-5, 5, 101)
    second = compile_as_users(jax.vmap(jax.jacfwd(jax.grad(cosine))))(z)
    np.testing.assert_allclose(second, -np.cos(z), rtol=0, atol=3e-7)


def test_double_precision_is_the_built_in(x64):
    z = jnp.linspace(-1e6, 1e6, 1001)
    assert z.dtype == jnp.float64
    np.testing.assert_array_equal(sine(z), jnp.sin(z))
    np.testing.assert_array_equal(cosine(z), jnp.cos(z))


def test_the_sine_of_a_vmapped_program_on_cpu_is_the_vectorized_one():
    """The dispatch by platform must be resolved when the program is compiled, also inside vmap and grad."""
    if jax.default_backend() != "cpu":
        pytest.skip("the vectorized sine is for CPU")
    z = jnp.zeros((8, 4))
    program = jax.jit(jax.vmap(jax.grad(lambda z: sine(z).sum()))).lower(z).as_text()
    assert "stablehlo.sine" not in program
    assert "stablehlo.cosine" not in program
