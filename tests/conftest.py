import jax
import pytest


@pytest.fixture(autouse=True)
def strict_promotion():
    """A float64 constant that slips into a float32 network is an error."""
    with jax.numpy_dtype_promotion("strict"):
        yield


@pytest.fixture
def x64():
    """Double precision for one test."""
    with jax.enable_x64(True):
        yield
