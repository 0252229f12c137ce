"""A loss that contains the Laplacian, as for Poisson's equation: (Δf / scale - y)², by Adam."""

import time
from collections.abc import Callable

import numpy as np

import uniphase as up

from .size import Run, Size
from .steps import optax_steps, torch_sequential

RATE = 1e-5


def _scale(size: Size) -> float:
    """About the size of a Laplacian, so that the loss is of order 1."""
    return float(np.trace(up.estimate_moments(size.field()).structure_tensor))


def uniphase_laplacian(size: Size) -> Run:
    """In blocks that stay in the cache."""
    import jax
    import jax.numpy as jnp

    def loss_and_gradients(network, positions, values, scale):
        @jax.value_and_grad
        def of_block(network, block):
            positions, values = block
            return jnp.sum((up.laplacian(network, positions) / scale - values) ** 2) / size.side**2

        def add(total, block):
            return jax.tree.map(jnp.add, total, of_block(network, block)), None

        blocks = tuple(rows.reshape(-1, 1024, rows.shape[1]) for rows in (positions, values))
        zero = jnp.zeros(()), jax.tree.map(jnp.zeros_like, network)
        return jax.lax.scan(add, zero, blocks)[0]

    return _jax_laplacian(size, loss_and_gradients)


def plain_laplacian(size: Size) -> Run:
    """As one writes it: the trace of `jax.hessian` under `vmap`."""
    import jax
    import jax.numpy as jnp

    def loss(network, positions, values, scale):
        laplacian = jax.vmap(lambda x: jnp.trace(jax.hessian(network)(x), axis1=-2, axis2=-1))(positions)
        return jnp.mean((laplacian / scale - values) ** 2)

    return _jax_laplacian(size, jax.value_and_grad(loss))


def _jax_laplacian(size: Size, loss_and_gradients: Callable) -> Run:
    import jax.numpy as jnp

    data, scale = tuple(map(jnp.asarray, size.data())), _scale(size)
    return optax_steps(size.network(), RATE, lambda network: loss_and_gradients(network, *data, scale))


def torch_laplacian(size: Size) -> Run:
    """Double backward: the gradient, and then the derivative of each of its components."""
    import torch

    torch.set_num_threads(2)
    model, scale = torch_sequential(size), _scale(size)
    positions, values = map(torch.tensor, size.data())
    positions.requires_grad_()
    start = {name: array.clone() for name, array in model.state_dict().items()}

    def laplacian():
        (gradient,) = torch.autograd.grad(model(positions).sum(), positions, create_graph=True)
        second = [torch.autograd.grad(gradient[:, i].sum(), positions, create_graph=True)[0][:, i] for i in range(2)]
        return torch.stack(second).sum(0)

    def run(count):
        model.load_state_dict(start)
        parameters = list(model.parameters())
        optimizer, losses = torch.optim.Adam(parameters, lr=RATE), []
        begun = time.perf_counter()
        for _ in range(count):
            optimizer.zero_grad()
            loss = ((laplacian()[:, None] / scale - values) ** 2).mean()
            loss.backward(inputs=parameters)
            optimizer.step()
            losses.append(loss.detach())
        return time.perf_counter() - begun, [float(loss) for loss in losses]

    return run
