"""Fit an image in plain PyTorch, with nothing to tune: python examples/fit_image_torch.py"""

import torch

import uniphase as up
import uniphase.torch as upt


def main(size: int = 128, steps: int | None = None) -> float:
    field = up.load("camera", size=size)  # or your file: up.image("photo.png")
    moments = up.estimate_moments(field)
    width, depth = up.default_size(field)
    blueprint = up.uniform_phase(moments, width=width, depth=depth)
    network = upt.CoordinateMLP(blueprint, generator=torch.Generator().manual_seed(0))
    recipe = up.default_recipe(field, network)
    steps = recipe.steps if steps is None else steps

    x = torch.tensor(field.coordinates(), dtype=torch.float32)
    y = torch.tensor(field.flat_values(), dtype=torch.float32)
    optimizer = upt.UnitMuon(network, field, moments, lr=recipe.learning_rate)
    final_rate = recipe.final_fraction * recipe.learning_rate
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps, eta_min=final_rate)
    for step in range(steps):
        batch = upt.draw_batch(len(x), recipe.batch)
        loss = (network(x[batch]) - y[batch]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 50 == 0:
            print(f"step {step:4d}  mse {loss.item():.6f}", flush=True)

    with torch.no_grad():
        picture = network(x).reshape(field.values.shape).numpy()
    upt.save_network("camera.uniphase", up.NetworkFile.of(network, field, blueprint=blueprint))
    psnr = up.evaluate(picture, field).psnr_db
    print(f"{psnr:.2f} dB PSNR after {steps} steps; wrote camera.uniphase")
    return psnr


if __name__ == "__main__":
    main()
