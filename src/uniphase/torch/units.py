"""Units: which parameters of a model are stepped in which units."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from ..initialization.blueprint import Role
from ..initialization.moments import Moments, estimate_moments
from ..recipe import Units, position_moments
from ..signals.fields import Extent, Field, Grid, Points
from .reading import Chain, Model, ReadLayer, StatedLayers, Stored, read_layers

Kind = Literal["input", "hidden", "output", "input phase", "hidden phase", "offset", "other"]
# What a layer uses of a parameter: its kind, the factor ω before it, its units, and the places of its numbers in the
# flattened parameter, if these are not all of them in their order. Only what files of PyTorch can hold.
Part = dict[str, Any]
# Where a model is trained: a field, positions, or an interval for each coordinate.
Domain = Field | Sequence[Extent] | Tensor


def read_chain(model: Model) -> Chain:
    """`read_layers`, also where the device meta is PyTorch's default: places of numbers are numbers themselves."""
    with torch.device("cpu"):
        return read_layers(model)


def trained_parameters(model: Model) -> dict[str, Tensor]:
    """All that is trained, by name."""
    module = model.model if isinstance(model, StatedLayers) else model
    return {name: tensor for name, tensor in module.named_parameters() if tensor.requires_grad}


def unit_groups(chain: Chain, domain: Domain, moments: Moments) -> list[dict[str, Any]]:
    """The parameters of a chain by kind, with what is needed for the steps of each.

    `parts` are those of each parameter that a layer uses: usually one, and one for each layer where their matrices are
    stacked. A matrix under a weight norm is a group by itself, with the directions and their lengths.
    """
    units = Units.at(chain.inner_positions(*_position_moments(domain)), chain.inner_moments(moments), chain.width)
    found: dict[int, tuple[Stored, list[Part]]] = {}
    seen: list[Stored] = []
    for stored, part in (each for layer in chain.layers for each in _parts(layer, units)):
        tensor = stored.tensor
        if tensor.requires_grad and tensor.is_leaf and not any(stored.overlaps(other) for other in seen):
            require_precision(tensor)
            found.setdefault(id(tensor), (stored, []))[1].append(part)
            seen.append(stored)  # two layers may share their weights
    groups: dict[Any, dict[str, Any]] = {}
    for key, (stored, parts) in found.items():
        kind, norm = parts[0]["kind"], stored.norm
        empty = {"params": [], "kind": kind, "parts": [], "norm": None if norm is None else norm.dim}
        group = groups.setdefault(kind if norm is None else key, empty)
        group["params"] += [stored.tensor] if norm is None else [stored.tensor, norm.lengths]
        group["parts"].append(parts)
    return list(groups.values())


def _parts(layer: ReadLayer, units: Units) -> Iterator[tuple[Stored, Part]]:
    """The weights and the bias of a layer. What multiplies them in the model makes their steps smaller by as much."""
    weights: dict[Role, tuple[Any, ...]] = {
        "input": (layer.gain * units.center, units.input_factor),
        "hidden": (),
        "output": (units.output_factor,),
    }
    biases: dict[Role, Kind] = {"input": "input phase", "hidden": "hidden phase", "output": "offset"}
    if layer.stored is not None:
        yield layer.stored, _part(layer.stored, layer.role, layer.omega * layer.gain, weights[layer.role])
    if layer.stored_bias is not None:
        offset = (units.offset,) if layer.role == "output" else ()
        yield layer.stored_bias, _part(layer.stored_bias, biases[layer.role], layer.omega, offset)


def _part(stored: Stored, kind: Kind, factor: float, units: Sequence[Any]) -> Part:
    index = None if stored.in_order else stored.index
    return {"kind": kind, "omega": abs(factor), "units": [_unit(u, stored.tensor) for u in units], "index": index}


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
