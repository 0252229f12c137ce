"""An image in PyTorch: python examples/fit_image_torch.py

The same in PyTorch, with nothing to tune, and without JAX. The model may be any module of yours that maps positions to
channels; this one is drawn from a blueprint.
"""

import sys

import torch

import uniphase as up
import uniphase.torch as upt


def main(size: int = 128, steps: int | None = None) -> float:
    field = up.load("camera", size=size)  # or your file: up.image("photo.png")
    moments = up.estimate_moments(field)
    width, depth = up.default_size(field)
    blueprint = up.uniform_phase(moments, width=width, depth=depth, output_scale=0.05)
    network = upt.CoordinateMLP(blueprint, generator=torch.Generator().manual_seed(0))  # or any module of yours

    def show(progress: up.Progress) -> None:
        print(f"step {progress.step:4d}  {progress.psnr_db:.2f} dB PSNR", end="\r", file=sys.stderr, flush=True)

    result = upt.fit(network, field, moments=moments, blueprint=blueprint, steps=steps, callback=show)
    result.save("camera.uniphase")
    result.plot().savefig("fit_image_torch.png")
    assert result.metrics is not None
    psnr = result.metrics.psnr_db
    print(f"{psnr:.2f} dB PSNR after {result.steps} steps; wrote camera.uniphase")
    return psnr


if __name__ == "__main__":
    main()
