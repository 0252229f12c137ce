"""μP: learning rates by the roles of parameters, for any optimizer of PyTorch."""

from typing import Any

from .reading import Chain, Model, read_layers
from .units import trained_parameters


def param_groups(model: Model, lr: float, base_width: int) -> list[dict[str, Any]]:
    """Groups for an optimizer whose best rate then changes little with the width (μP).

    Hidden matrices and the output weights get the rate `lr · base_width / width`; the input weights, the biases, the
    lengths of a weight norm and all else that is trained get `lr`.

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
    trained = trained_parameters(model)
    wide = {id(layer.stored.tensor) for layer in chain.layers if layer.stored is not None and layer.role != "input"}
    _require_apart(chain, wide)
    scaled = [tensor for tensor in trained.values() if id(tensor) in wide]
    others = [tensor for tensor in trained.values() if id(tensor) not in wide]
    return [
        {"params": others, "lr": lr, "name": "input weights and biases"},
        {"params": scaled, "lr": lr * base_width / chain.width, "name": "hidden and output weights"},
    ]


def _require_apart(chain: Chain, wide: set[int]) -> None:
    """Raise an error if the input weights share a parameter with others, which would need two rates."""
    first = chain.layers[0].stored
    if first is not None and id(first.tensor) in wide:
        raise ValueError(
            f"{first.name} holds the weights of the first layer and of others, which need different rates; give the "
            "first layer a parameter of its own"
        )
