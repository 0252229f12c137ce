"""The picture of a fit: the field, what the network made of it, the error and the losses."""

import math
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Shaped

from ..signals.fields import Field, Grid, Points
from ..signals.metrics import Metrics
from ..signals.paths import FilePath
from .drawing import draw_curve, draw_losses, middle_slice, new_figure, panel_aspect, save_figure, show_image
from .scatter import scatter_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def preview_figure(
    field: Field,
    prediction: Shaped[np.ndarray, "..."],
    losses: Float[np.ndarray, " steps"],
    metrics: Metrics,
    title: str,
    *,
    surface: Shaped[np.ndarray, "..."] | None = None,
) -> "Figure":
    """Draw a field, the network's values, their error and the loss of every step.

    A sound is drawn as waveforms and spectrograms. Of an array with more than two axes, the slice in the middle is
    drawn; of scattered points, the first channel.

    **Arguments:**

    - `field`: the field that was fitted.
    - `prediction`: the network's values at the samples of the field, in the shape of `field.values`.
    - `losses`: the mean squared error of every step.
    - `metrics`: of the prediction.
    - `title`: above the panels.
    - `surface`: for scattered points, the network's values on a grid of the shape `surface_shape(field)` over their
        bounding box, ends included.

    !!! example
        ```python
        prediction = render(network, field.shape)
        figure = preview_figure(field, prediction, np.geomspace(1.0, 0.01, 100), evaluate(prediction, field), "a field")
        ```
    """
    quality = f"fit, PSNR {metrics.psnr_db:.1f} dB"
    if isinstance(field, Points):
        figure = scatter_figure(field, prediction, surface, losses, quality)
    elif field.medium == "sound":
        figure = _sound_preview(field, prediction, losses, f"fit, SNR {metrics.snr_db:.1f} dB")
    elif field.in_size == 1:
        figure = _curve_preview(field, prediction, losses, quality)
    else:
        figure = _image_preview(field, prediction, losses, quality)
    figure.suptitle(title, y=1.01, va="bottom", parse_math=False)
    return figure


def write_preview(
    path: FilePath,
    field: Field,
    prediction: Shaped[np.ndarray, "..."],
    losses: Float[np.ndarray, " steps"],
    metrics: Metrics,
    title: str,
    *,
    surface: Shaped[np.ndarray, "..."] | None = None,
) -> None:
    """Write the figure of `preview_figure` to a file, whole or not at all.

    !!! example
        ```python
        prediction = render(network, field.shape)
        metrics = evaluate(prediction, field)
        write_preview("fit.png", field, prediction, np.geomspace(1.0, 0.01, 100), metrics, "a field")
        ```
    """
    save_figure(preview_figure(field, prediction, losses, metrics, title, surface=surface), path)


def _image_preview(field: Grid, prediction: np.ndarray, losses: np.ndarray, quality: str) -> "Figure":
    truth, fit = middle_slice(field.values), middle_slice(prediction)
    aspect = panel_aspect(truth)
    side = 3.6 / math.sqrt(aspect)  # so that panels of all shapes have the same area
    figure = new_figure(4 * side + 2, side * aspect + 0.8)
    panels = figure.subplots(1, 4)
    for axes, values, name in zip(panels, (truth, fit), ("truth", quality), strict=False):
        show_image(axes, values, field)
        axes.set_title(name)
    error = np.abs(fit.astype(np.float64) - truth).mean(axis=-1)
    image = panels[2].imshow(error, cmap="magma", vmin=0, aspect="auto")
    panels[2].set_axis_off()
    panels[2].set_box_aspect(aspect)
    panels[2].set_title("|error|")
    figure.colorbar(image, ax=panels[2], format="%.2g")
    draw_losses(panels[3], losses)
    panels[3].set_box_aspect(aspect)
    return figure


def _curve_preview(field: Grid, prediction: np.ndarray, losses: np.ndarray, quality: str) -> "Figure":
    figure = new_figure(14.0, 4.0)
    curves, error, loss = figure.subplots(1, 3, width_ratios=[2, 2, 1.4])
    x = field.coordinates()[:, 0]
    draw_curve(curves, x, field.values[:, 0], label="truth", color="0.5")
    draw_curve(curves, x, prediction[:, 0], label="fit", color="C0")
    curves.legend()
    curves.set_title(quality)
    draw_curve(error, x, prediction[:, 0].astype(np.float64) - field.values[:, 0], color="C3")
    error.set_title("error")
    draw_losses(loss, losses)
    return figure


def _sound_preview(field: Grid, prediction: np.ndarray, losses: np.ndarray, quality: str) -> "Figure":
    figure = new_figure(14.0, 5.5)
    panels = figure.subplot_mosaic(
        [["truth", "truth spectrum", "loss"], ["fit", "fit spectrum", "loss"]], width_ratios=[2, 2, 1.4]
    )
    rate = field.rate or 1.0
    seconds = np.arange(len(field.values)) / rate
    spectra = [_spectrogram(values[:, 0], rate) for values in (field.values, prediction)]
    loudest = max(float(spectra[0][1].max()), -200.0)
    peak = float(np.abs(field.values[:, 0]).max()) or 1.0
    for name, values, (extent, decibels) in zip(("truth", "fit"), (field.values, prediction), spectra, strict=True):
        draw_curve(panels[name], seconds, values[:, 0], color="C0")
        panels[name].set(title=name if name == "truth" else quality, ylim=(-1.05 * peak, 1.05 * peak))
        spectrum = panels[f"{name} spectrum"]
        image = spectrum.imshow(
            decibels, extent=extent, origin="lower", aspect="auto", cmap="magma", vmin=loudest - 80, vmax=loudest
        )
        spectrum.set(xlim=(0, len(values) / rate), ylabel="kHz" if field.rate else "cycles per 1000 samples")
        for axes in (panels[name], spectrum):
            axes.locator_params(axis="x", nbins=6)
        figure.colorbar(image, ax=spectrum, label="dB")
    for name in ("fit", "fit spectrum"):
        panels[name].set_xlabel("seconds" if field.rate else "samples")
    draw_losses(panels["loss"], losses)
    return figure


def _spectrogram(values: np.ndarray, rate: float) -> tuple[tuple[float, float, float, float], np.ndarray]:
    """The power in dB over time and frequency, and its extent in seconds and kHz; at most about 1,000 columns."""
    from scipy.signal import ShortTimeFFT
    from scipy.signal.windows import hann

    length = min(512, len(values))
    transform = ShortTimeFFT(hann(length, sym=False), hop=max(length // 4, len(values) // 1000, 1), fs=rate)
    power = transform.spectrogram(values.astype(np.float64))
    left, right, bottom, top = transform.extent(len(values))
    return (left, right, bottom / 1000, top / 1000), 10 * np.log10(power + 1e-20)
