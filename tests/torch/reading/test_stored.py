import pytest

torch = pytest.importorskip("torch", reason="the extra torch is not installed")

from torch import nn  # noqa: E402

from uniphase.torch.reading.stored import Stored, WeightNorm  # noqa: E402


def matrix():
    return torch.arange(6.0).reshape(2, 3)


def test_a_tensor_as_it_is():
    parameter = nn.Parameter(matrix())
    stored = Stored.whole("net.0.weight", parameter)
    assert stored.as_it_is
    assert stored.numbers() is parameter
    assert stored.layer_name == "net.0"
    assert stored.trained == (parameter,)


def test_a_part_that_is_transposed():
    parameter = nn.Parameter(torch.zeros(2, 3, 4))
    stored = Stored("W", parameter, torch.arange(24).reshape(2, 3, 4)[1].T)
    numbers = torch.arange(12.0).reshape(4, 3)
    stored.write_(numbers)
    assert not stored.as_it_is
    assert torch.equal(stored.numbers(), numbers)
    assert torch.equal(parameter.detach(), torch.stack([torch.zeros(3, 4), numbers.T]))
    assert torch.equal(stored.arrange(parameter), numbers)
    gradient = stored.restore(numbers, torch.ones(2, 3, 4))  # a step that was computed for the matrix
    assert torch.equal(gradient, torch.stack([torch.ones(3, 4), numbers.T]))


def test_a_weight_norm():
    directions, lengths = nn.Parameter(matrix()), nn.Parameter(torch.ones(2, 1))
    stored = Stored("weight_v", directions, torch.arange(6).reshape(2, 3), WeightNorm(lengths, 0))
    torch.testing.assert_close(stored.numbers(), matrix() / matrix().norm(dim=1, keepdim=True))
    stored.write_(-2 * matrix())
    torch.testing.assert_close(stored.numbers(), -2 * matrix())
    assert stored.trained == (directions, lengths)
    assert not stored.as_it_is


def test_overlaps():
    parameter, index = nn.Parameter(torch.zeros(2, 3, 3)), torch.arange(18).reshape(2, 3, 3)
    first, second = Stored("W", parameter, index[0]), Stored("W", parameter, index[1])
    assert not first.overlaps(second)
    assert first.overlaps(Stored("W", parameter, index[0].T))
    assert not first.overlaps(Stored.whole("V", nn.Parameter(torch.zeros(3, 3))))
