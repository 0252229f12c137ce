"""What benchmarks/speed.py times: for each piece of work, the same computation by each contender.

A contender is a function that prepares the work and returns `run(count)`, which does it `count` times and gives the
seconds it took and what it computed. All start from the same weights, on the same data. Each runs in a process of its
own, and imports only what it needs.
"""

import resource
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import uniphase as up

Run = Callable[[int], tuple[float, list[float]]]
RATE = 1e-4
LAPLACIAN_RATE = 1e-5
CHUNK = 65_536  # positions at a time, where a peer would otherwise need gigabytes
PIXELS = 4096  # along each side of the large image


@dataclass(frozen=True)
class Size:
    """A network of `depth` hidden layers, on a square picture of `side`² pixels."""

    width: int
    depth: int
    side: int = 128

    def field(self) -> up.Grid:
        return up.load("camera", size=self.side)

    def data(self) -> tuple[np.ndarray, np.ndarray]:
        field = self.field()
        return field.coordinates().astype(np.float32), field.flat_values().astype(np.float32)

    def blueprint(self) -> up.Blueprint:
        return up.uniform_phase(up.estimate_moments(self.field()), width=self.width, depth=self.depth)

    def parameters(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Weights and biases, drawn by NumPy, so that every framework can start from them."""
        rng = np.random.default_rng(0)
        draws = {"normal": rng.standard_normal, "uniform": rng.random, "zero": np.zeros}

        def draw(law, shape):
            return law.sample(draws[law.standard](shape), np.asarray).astype(np.float32)

        return [(draw(p.weight, (p.rows, p.columns)), draw(p.bias, (p.rows,))) for p in self.blueprint().layers]

    def network(self) -> Any:
        import equinox as eqx
        import jax
        import jax.numpy as jnp

        network = up.CoordinateMLP(self.blueprint(), key=jax.random.key(0))
        arrays = [jnp.asarray(array) for pair in self.parameters() for array in pair]
        return eqx.tree_at(lambda n: [a for layer in n.layers for a in (layer.weight, layer.bias)], network, arrays)


# Steps of full-batch training.


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
    return _optax(start, RATE, eqx.filter_value_and_grad(loss))


def _optax(start: Any, rate: float, loss_and_gradients: Callable) -> Run:
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


def _torch_sequential(size: Size) -> Any:
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
    model = _torch_sequential(size)
    return _torch(size, model, model)


def torch_compile(size: Size) -> Run:
    import torch

    model = _torch_sequential(size)
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


# The limit: the matrix products of the hidden layers of a step and nothing else, each in its fastest layout.


def products_numpy(size: Size) -> Run:
    return _products(size, np.asarray, lambda product: product, lambda result: result)


def products_torch(size: Size) -> Run:
    import torch

    torch.set_num_threads(2)
    return _products(size, torch.tensor, lambda product: product, lambda result: result)


def products_jax(size: Size) -> Run:
    import jax
    import jax.numpy as jnp

    return _products(size, jnp.asarray, jax.jit, jax.block_until_ready)


def _products(size: Size, asarray: Callable, compiled: Callable, wait: Callable) -> Run:
    """Forward W h, backward Wᵀ g and the gradient g hᵀ: rows or columns, whole or in blocks, whichever is fastest."""
    rng, points = np.random.default_rng(0), size.side**2
    weight = asarray(rng.standard_normal((size.width, size.width), dtype=np.float32))
    candidates: dict[str, list[Callable]] = {"forward": [], "backward": [], "gradient": []}
    for block in (2048, points):
        h, g = (asarray(rng.standard_normal((size.width, block), dtype=np.float32)) for _ in range(2))
        h_rows, g_rows = (asarray(np.ascontiguousarray(np.asarray(a).T)) for a in (h, g))
        transposed = asarray(np.ascontiguousarray(np.asarray(weight).T))
        layouts = {
            "forward": [(lambda w, h: w @ h, weight, h), (lambda h, w: h @ w.T, h_rows, weight),
                        (lambda h, w: h @ w, h_rows, transposed)],
            "backward": [(lambda w, g: w.T @ g, weight, g), (lambda w, g: w @ g, transposed, g),
                         (lambda g, w: g @ w, g_rows, weight)],
            "gradient": [(lambda g, h: g @ h.T, g, h), (lambda g, h: g.T @ h, g_rows, h_rows),
                         (lambda g, h: g @ h, g, h_rows)],
        }  # fmt: skip
        for kind, choices in layouts.items():
            for product, *operands in choices:
                function, repeats = compiled(product), points // block

                def whole(function=function, operands=operands, repeats=repeats):
                    wait([function(*operands) for _ in range(repeats)])

                candidates[kind].append(whole)

    def seconds(function):
        begun = time.perf_counter()
        function()
        return time.perf_counter() - begun

    for choices in candidates.values():
        for function in choices:
            function()  # compiled, and in the cache
    best = [min(choices, key=lambda f: min(seconds(f) for _ in range(5))) for choices in candidates.values()]

    def run(count):
        begun = time.perf_counter()
        for _ in range(count * size.depth):
            for function in best:
                function()
        return time.perf_counter() - begun, []

    return run


def sines_jax(size: Size) -> Run:
    """The sines and cosines of a step alone, by uniphase."""
    import jax
    import jax.numpy as jnp

    z = jnp.asarray(np.random.default_rng(0).normal(0, 2, (size.width, size.side**2)).astype(np.float32))
    both = jax.jit(lambda z: (up.sine(z), up.cosine(z)))

    def run(count):
        begun = time.perf_counter()
        for _ in range(count * (size.depth + 1)):
            jax.block_until_ready(both(z))
        return time.perf_counter() - begun, []

    return run


# Many narrow networks.


def uniphase_together(size: Size) -> Run:
    return _narrow(size, lambda networks, rates: [(networks, rates)])


def uniphase_one_by_one(size: Size) -> Run:
    return _narrow(size, lambda networks, rates: [([n], [r]) for n, r in zip(networks, rates, strict=True)])


def _narrow(size: Size, groups: Callable) -> Run:
    """21 rates from 2⁻¹⁸ to 2², the grid of the paper's μP sweep."""
    network, field = size.network(), size.field()
    rates = [up.Rates.uniform(2.0**q) for q in range(-18, 3)]

    def run(count):
        begun, losses = time.perf_counter(), []
        for networks, some in groups([network] * len(rates), rates):
            losses += [trace.losses[0] for trace in up.fit_together(networks, field, rates=some, steps=count)]
        return time.perf_counter() - begun, [float(loss) for loss in losses]

    return run


# Rendering.


def uniphase_render(size: Size) -> Run:
    network = size.network()

    def run(count):
        begun = time.perf_counter()
        pictures = [up.render(network, (size.side, size.side)) for _ in range(count)]
        return time.perf_counter() - begun, pictures[-1][::97, ::97].ravel().tolist()

    return run


def torch_render(size: Size) -> Run:
    import torch

    torch.set_num_threads(2)
    model = _torch_sequential(size)
    positions = torch.tensor(up.Grid(np.zeros((size.side, size.side, 1))).coordinates().astype(np.float32))

    def run(count):
        begun = time.perf_counter()
        with torch.no_grad():
            pictures = [torch.cat([model(chunk) for chunk in positions.split(CHUNK)]) for _ in range(count)]
        picture = pictures[-1].reshape(size.side, size.side)
        return time.perf_counter() - begun, picture[::97, ::97].ravel().tolist()

    return run


# A loss that contains the Laplacian, as for Poisson's equation: (Δf / scale - y)², by Adam.


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
    return _optax(size.network(), LAPLACIAN_RATE, lambda network: loss_and_gradients(network, *data, scale))


def torch_laplacian(size: Size) -> Run:
    """Double backward: the gradient, and then the derivative of each of its components."""
    import torch

    torch.set_num_threads(2)
    model, scale = _torch_sequential(size), _scale(size)
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
        optimizer, losses = torch.optim.Adam(parameters, lr=LAPLACIAN_RATE), []
        begun = time.perf_counter()
        for _ in range(count):
            optimizer.zero_grad()
            loss = ((laplacian()[:, None] / scale - values) ** 2).mean()
            loss.backward(inputs=parameters)
            optimizer.step()
            losses.append(loss.detach())
        return time.perf_counter() - begun, [float(loss) for loss in losses]

    return run


# Memory of one step; `run` gives bytes in place of seconds.


def _peak(run: Run) -> Run:
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


# Moments of a large image, from its file.


def _large_image() -> Path:
    path = Path(tempfile.gettempdir()) / f"uniphase-benchmark-{PIXELS}.npy"
    if not path.exists():
        partial = path.with_suffix(".partial.npy")
        np.save(partial, np.random.default_rng(0).random((PIXELS, PIXELS, 3), dtype=np.float32))
        partial.rename(path)
    return path


def uniphase_moments(_: Size) -> Run:
    path = _large_image()

    def run(count):
        begun = time.perf_counter()
        for _ in range(count):
            up.estimate_moments(up.array(path, axes=2))
        return time.perf_counter() - begun, []

    return run


def scipy_sobel(_: Size) -> Run:
    """Reading it, and one derivative per axis and channel."""
    import scipy.ndimage

    path = _large_image()

    def run(count):
        begun = time.perf_counter()
        for _ in range(count):
            image = np.load(path)
            for channel in range(3):
                for axis in range(2):
                    scipy.ndimage.sobel(image[..., channel], axis=axis)
        return time.perf_counter() - begun, []

    return run
