"""Units: which parameters of a model are stepped in which units."""

import copy
import dataclasses
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from ..initialization.moments import Moments, estimate_moments
from ..recipe import Units, position_moments
from ..signals.fields import Extent, Field, Grid, Points
from .reading import Chain, Model, ReadLayer, read_layers

Kind = Literal["input", "hidden", "output", "input phase", "hidden phase", "offset", "other"]
# Where a model is trained: a field, positions, or an interval for each coordinate.
Domain = Field | Sequence[Extent] | Tensor


def read_chain(model: Model) -> Chain:
    """`read_layers`. A model on the device meta has shapes alone; twins with numbers are read in its place."""
    if not isinstance(model, torch.nn.Module) or not any(tensor.is_meta for tensor in model.parameters()):
        return read_layers(model)
    with torch.device("cpu"):  # the default may be meta as well
        chains = [_chain_of_twin(model, seed) for seed in (0, 1)]
    first, second = ([layer.omega for layer in chain.layers] for chain in chains)
    if first != second:
        raise ValueError(
            "a factor of the model is a tensor on the device meta, which has no value; give the model values first, "
            "by model.to_empty(device=...) and reset_parameters"
        )
    return chains[0]


def _chain_of_twin(model: torch.nn.Module, seed: int) -> Chain:
    """The chain of a twin with random numbers, with the model's own tensors in their places."""
    twin, generator = copy.deepcopy(model).to_empty(device="cpu"), torch.Generator().manual_seed(seed)
    own, others = _named(model), _named(twin)
    for name, tensor in others.items():
        values = torch.randn(tensor.shape, generator=generator) if own[name].is_meta else own[name]
        tensor.data.copy_(values)
    place = {id(tensor): own[name] for name, tensor in others.items()}

    def own_tensors(layer: ReadLayer) -> ReadLayer:
        bias = None if layer.bias is None else place[id(layer.bias)]
        return dataclasses.replace(layer, weight=place[id(layer.weight)], bias=bias)

    chain = read_layers(twin)
    return dataclasses.replace(chain, layers=tuple(map(own_tensors, chain.layers)))


def _named(model: torch.nn.Module) -> dict[str, Tensor]:
    return {**dict(model.named_parameters(remove_duplicate=False)), **dict(model.named_buffers())}


def unit_groups(chain: Chain, domain: Domain, moments: Moments) -> list[dict[str, Any]]:
    """The parameters of a chain by kind and ω, with the units of the kind."""
    units = Units.at(_position_moments(domain), moments, chain.width)
    biases: dict[str, Kind] = {"input": "input phase", "hidden": "hidden phase", "output": "offset"}
    of_kind: dict[Kind, tuple[Any, ...]] = {
        "input": (units.center, units.input_factor),
        "output": (units.output_factor,),
        "offset": (units.offset,),
    }
    grouped: dict[tuple[Kind, float], list[Tensor]] = {}
    seen: set[int] = set()  # two layers may share their weights
    for layer in chain.layers:
        tensors: dict[Kind, Tensor | None] = {layer.role: layer.weight, biases[layer.role]: layer.bias}
        for kind, tensor in tensors.items():
            if tensor is not None and tensor.requires_grad and tensor.is_leaf and id(tensor) not in seen:
                require_precision(tensor)
                grouped.setdefault((kind, layer.omega), []).append(tensor)
                seen.add(id(tensor))
    return [
        {"params": found, "kind": kind, "omega": omega, "units": [_unit(u, found[0]) for u in of_kind.get(kind, ())]}
        for (kind, omega), found in grouped.items()
    ]


def _unit(unit: Any, parameter: Tensor) -> Tensor:
    """A unit where it is needed; on the device meta it would be lost."""
    tensor = torch.as_tensor(unit, device="cpu")
    return tensor if parameter.is_meta else tensor.to(parameter)


def require_precision(parameter: Tensor) -> None:
    """Raise an error for numbers too coarse to be stepped."""
    if parameter.dtype == torch.float16:
        raise ValueError(
            "the model is in torch.float16, too coarse for the steps of UnitMuon; keep it in float32, with "
            "model.float(), and compute its outputs under torch.autocast"
        )


def estimated_moments(domain: Domain) -> Moments:
    """The moments of a field; an error for a domain without values."""
    if isinstance(domain, Grid | Points):
        return estimate_moments(domain)
    raise ValueError(
        "moments is None, and only a field has moments to be estimated; pass what is known in advance, e.g. "
        "uniphase.prescribe_moments(length_scale=[0.1, 0.1])"
    )


def _position_moments(domain: Domain) -> tuple[np.ndarray, np.ndarray]:
    if not isinstance(domain, Tensor):
        return position_moments(domain)
    positions = domain.detach().reshape(-1, domain.shape[-1]).double().cpu().numpy()
    covariance = np.atleast_2d(np.cov(positions.T, ddof=0)) if len(positions) > 1 else np.zeros((1, 1))
    if not np.isfinite(covariance).all() or np.linalg.matrix_rank(covariance) < len(covariance):
        raise ValueError(
            f"domain has {len(positions)} positions, which are not finite or do not spread along every coordinate; "
            "pass positions that fill the domain"
        )
    return positions.mean(axis=0), covariance


def require_sizes(chain: Chain, domain: Domain, moments: Moments) -> None:
    """Raise an error if the model has not the sizes of the signal."""
    sizes = (chain.in_size, chain.out_size)
    known = {"field": domain} if isinstance(domain, Grid | Points) else {}
    known = known | {"moments": moments}
    for name, other in known.items():
        if sizes != (other.in_size, other.out_size):
            raise ValueError(
                f"{name} has {other.in_size} coordinates and {other.out_size} channels, but the model has {sizes[0]} "
                f"and {sizes[1]}; pass the {name} of the signal that the model is for"
            )
    if isinstance(domain, Tensor):
        if domain.ndim < 2 or domain.shape[-1] != chain.in_size:
            raise ValueError(
                f"domain is a tensor of shape {tuple(domain.shape)}, but the model takes {chain.in_size} coordinates; "
                f"pass positions (n, {chain.in_size})"
            )
    elif not isinstance(domain, Grid | Points) and len(domain) != chain.in_size:
        raise ValueError(
            f"domain is {domain!r}, but the model takes {chain.in_size} coordinates; pass a field, positions, or "
            "(low, high) for each of them"
        )
