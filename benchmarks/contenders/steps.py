"""Steps of full-batch training, and the memory of one."""

import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import uniphase as up

from .size import Run, Size

RATE = 1e-4


def uniphase_adam(size: Size) -> Run:
    return _uniphase(size, up.paper_recipe(size.field(), learning_rate=RATE))


def uniphase_muon(size: Size) -> Run:
    return _uniphase(size, up.Recipe("muon", RATE, 1.0, 1, size.side**2))


def _uniphase(size: Size, recipe: up.Recipe) -> Run:
    network, field = size.network(), size.field()
    moments = up.estimate_moments(field)

    def run(count):
        fit = up.fit(network, field, recipe=recipe, moments=moments, steps=count)
        return fit.seconds, fit.losses.tolist()

    return run


def plain_equinox(size: Size) -> Run:
    """As one writes it: `vmap`, `jnp.sin`, one jitted step."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    class Network(eqx.Module):
        layers: list[eqx.nn.Linear]

        def __call__(self, x):
            for layer in self.layers[:-1]:
                x = jnp.sin(layer(x))
            return self.layers[-1](x)

    def linear(weight, bias):
        layer = eqx.nn.Linear(*weight.shape[::-1], key=jax.random.key(0))
        return eqx.tree_at(lambda m: (m.weight, m.bias), layer, (jnp.asarray(weight), jnp.asarray(bias)))

    positions, values = map(jnp.asarray, size.data())

    def loss(network):
        return jnp.mean((jax.vmap(network)(positions) - values) ** 2)

    start = Network([linear(*pair) for pair in size.parameters()])
    return optax_steps(start, RATE, eqx.filter_value_and_grad(loss))


def optax_steps(start: Any, rate: float, loss_and_gradients: Callable) -> Run:
    """Adam, one jitted step at a time."""
    import equinox as eqx
    import jax
    import optax

    optimizer = optax.adam(rate)

    @eqx.filter_jit
    def step(network, state):
        value, gradients = loss_and_gradients(network)
        updates, state = optimizer.update(gradients, state)
        return value, eqx.apply_updates(network, updates), state

    def run(count):
        network, state, losses = start, optimizer.init(eqx.filter(start, eqx.is_array)), []
        begun = time.perf_counter()
        for _ in range(count):
            value, network, state = step(network, state)
            losses.append(value)
        jax.block_until_ready(network)
        return time.perf_counter() - begun, [float(loss) for loss in losses]

    return run


def torch_sequential(size: Size) -> Any:
    import torch

    class Sine(torch.nn.Module):
        def forward(self, z):
            return torch.sin(z)

    modules = []
    for weight, bias in size.parameters():
        linear = torch.nn.Linear(*weight.shape[::-1])
        linear.weight.data, linear.bias.data = torch.tensor(weight), torch.tensor(bias)
        modules += [linear, Sine()]
    return torch.nn.Sequential(*modules[:-1])


def _torch(size: Size, model: Any, forward: Callable) -> Run:
    import torch

    torch.set_num_threads(2)
    positions, values = map(torch.tensor, size.data())
    start = {name: array.clone() for name, array in model.state_dict().items()}

    def run(count):
        model.load_state_dict(start)
        optimizer, losses = torch.optim.Adam(model.parameters(), lr=RATE), []
        begun = time.perf_counter()
        for _ in range(count):
            optimizer.zero_grad()
            loss = ((forward(positions) - values) ** 2).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        return time.perf_counter() - begun, [float(loss) for loss in losses]

    return run


def torch_eager(size: Size) -> Run:
    model = torch_sequential(size)
    return _torch(size, model, model)


def torch_compile(size: Size) -> Run:
    import torch

    model = torch_sequential(size)
    return _torch(size, model, torch.compile(model))


def siren_pytorch(size: Size) -> Run:
    """Lucidrains' SirenNet, with ω = 1 and the same weights as all."""
    import torch
    from siren_pytorch import SirenNet

    model = SirenNet(2, size.width, 1, size.depth + 1, w0=1.0, w0_initial=1.0)
    arrays = [torch.tensor(array) for pair in size.parameters() for array in pair]
    model.load_state_dict(dict(zip(model.state_dict(), arrays, strict=True)))
    return _torch(size, model, model)


def uniphase_torch_fit(size: Size) -> Run:
    return _torch_fit(size, up.paper_recipe(size.field(), learning_rate=RATE))


def uniphase_torch_muon(size: Size) -> Run:
    return _torch_fit(size, up.Recipe("muon", RATE, 1.0, 1, size.side**2))


def _torch_fit(size: Size, recipe: up.Recipe) -> Run:
    """`fit` of the PyTorch side, with the same weights as all."""
    import torch

    import uniphase.torch as upt

    torch.set_num_threads(2)
    network, field = upt.CoordinateMLP(size.blueprint()), size.field()
    moments = up.estimate_moments(field)
    arrays = [torch.tensor(array) for pair in size.parameters() for array in pair]
    start = dict(zip(network.state_dict(), arrays, strict=True))

    def run(count):
        network.load_state_dict(start)
        fit = upt.fit(network, field, recipe=recipe, moments=moments, steps=count, samples="points")
        return fit.seconds, fit.losses.tolist()

    return run


def _peak(run: Run) -> Run:
    """A run that gives the bytes of the most memory in place of seconds."""
    unit = 1 if sys.platform == "darwin" else 1024

    def memory(count):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        _, result = run(count)
        return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * unit, result

    return memory


def uniphase_memory(size: Size) -> Run:
    return _peak(uniphase_adam(size))


def torch_memory(size: Size) -> Run:
    return _peak(torch_eager(size))
