import pytest

from uniphase.initialization.moments import prescribe_moments
from uniphase.initialization.schemes import SCHEMES

torch = pytest.importorskip("torch", reason="the extra torch is not installed")

import uniphase.torch as upt  # noqa: E402
from uniphase.torch import init, initialization  # noqa: E402

MOMENTS = prescribe_moments(length_scale=[0.1, 0.3])


def seeded():
    return torch.Generator().manual_seed(0)


@pytest.mark.parametrize("role", ["input", "hidden", "output"])
@pytest.mark.parametrize("name", SCHEMES)
def test_tensors_are_drawn_as_layers_are(name, role):
    """The same numbers as by the function of the same name for `nn.Linear`."""
    function = f"{SCHEMES[name].blueprint.__name__}_"
    sizes = {"input": (2, 16), "hidden": (16, 16), "output": (16, 1)}[role]
    layer = torch.nn.Linear(*sizes)
    getattr(initialization, function)(layer, role, MOMENTS, omega=3.0, generator=seeded())
    weight, bias = torch.empty(sizes[::-1]), torch.empty(sizes[1])
    assert getattr(init, function)(weight, bias, role, MOMENTS, omega=3.0, generator=seeded()) is weight
    assert torch.equal(weight, layer.weight)
    assert torch.equal(bias, layer.bias)


def test_parameters_and_transposed_views():
    kernel, bias = torch.nn.Parameter(torch.empty(16, 16)), torch.nn.Parameter(torch.empty(16))
    init.uniform_phase_(kernel.T, bias, generator=seeded())
    weight = init.uniform_phase_(torch.empty(16, 16), torch.empty(16), generator=seeded())
    assert torch.equal(kernel.T, weight)
    assert kernel.requires_grad


def test_the_examples_run():
    for name in SCHEMES.values():
        function = getattr(upt.init, f"{name.blueprint.__name__}_")
        code = function.__doc__.partition("```python")[2].partition("```")[0]
        assert code.strip().startswith("init.")
        exec(code.strip(), {"torch": torch, "init": upt.init})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((torch.empty(4),), r"weight has the shape \(4,\); pass a matrix \(rows, columns\)"),
        ((torch.empty(4, 2), torch.empty(2)), r"bias has the shape \(2,\), but weight has 4 rows"),
        ((torch.empty(4, 4),), "the layer has no bias, but uniform-phase draws it"),
        ((torch.empty(4, 3), torch.empty(4)), r"weight has the shape \(4, 3\), but in uniform-phase .* 'hidden' has"),
    ],
)
def test_what_does_not_fit_is_told(arguments, message):
    with pytest.raises(ValueError, match=message):
        init.uniform_phase_(*arguments)
