"""μP: learning rates by the roles of parameters, for any optimizer of PyTorch."""

from collections.abc import Container
from typing import Any

from torch import Tensor

from .reading import Chain, Model, read_layers
from .units import trained_parameters


def param_groups(model: Model, lr: float, base_width: int) -> list[dict[str, Any]]:
    """Groups for an optimizer whose best rate then changes little with the width (μP).

    Hidden matrices and the output weights get the rate `lr · base_width / columns`, where a matrix has as many columns
    as the layer before it is wide; the input weights, the biases, the lengths of a weight norm and all else that is
    trained get `lr`.

    **Arguments:**

    - `model`: as for `initialize_`.
    - `lr`: the rate that was found best at `base_width`.
    - `base_width`: where it was found.

    !!! example
        ```python
        optimizer = torch.optim.Adam(param_groups(model, 1e-3, base_width=64))
        ```

    ??? cite "Reference"
        Yang and coauthors, "Tensor programs V: tuning large neural networks via zero-shot hyperparameter transfer",
        NeurIPS 2021, in the form for Adam that the paper uses.
    """
    if not (lr > 0 and base_width > 0):
        raise ValueError(f"lr is {lr} and base_width is {base_width}; both must be positive")
    chain = read_layers(model)
    columns = {
        id(layer.stored.tensor): layer.weight.shape[1]
        for layer in chain.layers
        if layer.stored is not None and layer.role != "input"
    }
    _require_apart(chain, columns)
    groups: dict[int | None, list[Tensor]] = {None: []}  # those whose rate does not depend on a width come first
    for tensor in trained_parameters(model).values():
        groups.setdefault(columns.get(id(tensor)), []).append(tensor)
    others = {"params": groups.pop(None), "lr": lr, "name": "input weights and biases"}
    return [
        others,
        *(
            {"params": tensors, "lr": lr * base_width / width, "name": f"hidden and output weights, {width} columns"}
            for width, tensors in groups.items()
            if width is not None
        ),
    ]


def _require_apart(chain: Chain, wide: Container[int]) -> None:
    """Raise an error if the input weights share a parameter with others, which would need two rates."""
    first = chain.layers[0].stored
    if first is not None and id(first.tensor) in wide:
        raise ValueError(
            f"{first.name} holds the weights of the first layer and of others, which need different rates; give the "
            "first layer a parameter of its own"
        )
