"""A network in production, by ONNX: python examples/onnx_model.py

The exported model needs neither uniphase nor JAX: positions go in, channels come out, in any language that has a
runtime for ONNX. This one asks it for a small part of the photo only.
"""

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import onnxruntime

import uniphase as up


def main(size: int = 96, steps: int = 300, width: int = 96) -> float:
    """The largest difference between the exported model and the network."""
    result = up.fit("astronaut", size=size, width=width, steps=steps)
    result.save("astronaut.uniphase")
    up.export_network("astronaut.uniphase", "astronaut.onnx")

    session = onnxruntime.InferenceSession("astronaut.onnx")
    y, x = np.meshgrid(np.linspace(-0.75, -0.25, 200), np.linspace(-0.4, 0.3, 280), indexing="ij")
    positions = np.stack([y, x], axis=-1).astype(np.float32)
    (colors,) = session.run(None, {"positions": positions.reshape(-1, 2)})
    colors = np.asarray(colors).reshape(200, 280, 3)

    difference = float(np.abs(colors - np.asarray(result.network(jnp.asarray(positions)))).max())
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    for ax, title, picture in zip(axes, ("the fit", "a part, by onnxruntime"), (result.render(), colors), strict=True):
        ax.imshow(picture.clip(0, 1))
        ax.set(title=title, xticks=[], yticks=[])
    figure.savefig("onnx_model.png")
    print(f"{len(positions.reshape(-1, 2)):,} positions by onnxruntime; off by at most {difference:.1e}")
    return difference


if __name__ == "__main__":
    main()
