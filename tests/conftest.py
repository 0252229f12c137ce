import importlib.metadata
import importlib.util
import os
from pathlib import Path

import pytest

# PyTorch's tests run where JAX is not installed. Without it, the folder tests/jax would be found under its name.
if importlib.util.find_spec("jaxlib") is not None:
    import jax

    # Most of the time goes into compiling programs that run once. Without optimizations it takes half as long, and they
    # compute the same; `XLA_FLAGS= make test` has the code that users have, as some tests always do. A flag that is not
    # known ends the process, so versions that were not tried go without.
    if importlib.metadata.version("jaxlib").startswith("0.10."):
        flags = ("backend_optimization_level=0", "cpu_use_fusion_emitters=false", "cpu_parallel_codegen_split_count=1")
        os.environ.setdefault("XLA_FLAGS", " ".join(f"--xla_{flag}" for flag in flags))
    # The same small programs are compiled by many tests: once is enough, also for subprocesses and for the next run.
    cache = str(Path(__file__).parents[1] / ".pytest_cache" / "jax")
    for name, value in (("jax_compilation_cache_dir", cache), ("jax_persistent_cache_min_compile_time_secs", 0.0)):
        jax.config.update(name, value)
        os.environ[name.upper()] = str(value)

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
