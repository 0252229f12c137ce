import inspect

import pytest

from uniphase.initialization.schemes import sm20, tanh_pe

torch = pytest.importorskip("torch", reason="the extra torch is not installed")

from helpers.torch_models import OfficialSiren, sequential  # noqa: E402
from uniphase.torch.derivatives import gradient, laplacian  # noqa: E402
from uniphase.torch.network import CoordinateMLP  # noqa: E402


class Waves(torch.nn.Module):
    """sin(a x) cos(b y) and x² + y², whose derivatives are known."""

    def __init__(self):
        super().__init__()
        self.frequencies = torch.nn.Parameter(torch.tensor([2.0, 3.0], dtype=torch.float64))

    def forward(self, positions):
        x, y = positions.unbind(-1)
        a, b = self.frequencies
        return torch.stack([torch.sin(a * x) * torch.cos(b * y), x**2 + y**2], dim=-1)


def positions(*batch: int):
    return 2 * torch.rand(*batch, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) - 1


def test_derivatives_are_those_of_the_formula():
    at = positions(5, 4)
    x, y = at.unbind(-1)
    slopes = [2 * torch.cos(2 * x) * torch.cos(3 * y), -3 * torch.sin(2 * x) * torch.sin(3 * y)]
    expected = torch.stack([torch.stack(slopes, -1), 2 * at], dim=-2)
    torch.testing.assert_close(gradient(Waves(), at), expected)
    curvature = torch.stack([-13 * torch.sin(2 * x) * torch.cos(3 * y), torch.full_like(x, 4.0)], dim=-1)
    torch.testing.assert_close(laplacian(Waves(), at), curvature)


@pytest.mark.parametrize("plan", [sm20((2, 3), width=8, depth=2, omega=5.0), tanh_pe((2, 1), width=8, depth=1)])
def test_derivatives_of_networks(plan):
    network, at = CoordinateMLP(plan, dtype=torch.float64), positions(6)
    torch.testing.assert_close(gradient(network, at), torch.vmap(torch.func.jacrev(network))(at))
    hessian = torch.vmap(torch.func.jacrev(torch.func.jacrev(network)))(at)
    torch.testing.assert_close(laplacian(network, at), hessian.diagonal(dim1=-2, dim2=-1).sum(-1))
    assert gradient(network, at[0]).shape == (plan.out_size, 2)
    assert laplacian(network, at[0]).shape == (plan.out_size,)


def test_they_can_be_differentiated_further():
    model, at = Waves(), positions(3).requires_grad_()
    laplacian(model, at)[:, 0].sum().backward()
    x, y = at.detach().unbind(-1)
    torch.testing.assert_close(at.grad[:, 0], -26 * torch.cos(2 * x) * torch.cos(3 * y))
    a = (-4 * torch.sin(2 * x) - 13 * x * torch.cos(2 * x)) * torch.cos(3 * y)
    torch.testing.assert_close(model.frequencies.grad[0], a.sum())
    with torch.no_grad():
        assert not gradient(model, at).requires_grad
        assert not laplacian(model, at).requires_grad


def test_a_function_without_curvature():
    linear, edges = torch.nn.Linear(2, 3).double(), sequential(torch.nn.ReLU()).double()
    for model in (linear, edges):
        assert torch.equal(laplacian(model, positions(4)), torch.zeros(4, 3, dtype=torch.float64))
    torch.testing.assert_close(gradient(linear, positions(4)), linear.weight.expand(4, 3, 2))


def test_what_cannot_be_differentiated_is_told():
    with pytest.raises(ValueError, match=r"do not depend on its positions .* e.g. model.net"):
        gradient(OfficialSiren(), torch.rand(4, 2))
    siren = OfficialSiren()
    assert gradient(siren.net, torch.rand(4, 2)).shape == (4, 3, 2)
    with pytest.raises(ValueError, match=r"x has the shape \(2,\) and the type torch.int64"):
        inspect.unwrap(gradient)(siren.net, torch.tensor([1, 2]))
