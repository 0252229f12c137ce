"""A sound at another rate: python examples/sound.py

Three plucked strings, made by filtering a burst of noise in a loop. The network is fitted to 8,000 samples per second
and written at 16,000: it has a value at any time.
"""

import matplotlib.pyplot as plt
import numpy as np
import soundfile

import uniphase as up


def pluck(pitch: float, samples: int, rate: int) -> np.ndarray:
    """A string: noise that runs in a loop of one period and is smoothed in every turn."""
    loop = np.random.default_rng(0).uniform(-1, 1, round(rate / pitch))
    sound = np.empty(samples)
    for i in range(samples):
        sound[i] = loop[i % len(loop)]
        loop[i % len(loop)] = 0.996 * (loop[i % len(loop)] + loop[(i + 1) % len(loop)]) / 2
    return sound


def main(samples: int = 12000, steps: int = 500, rate: int = 8000) -> float:
    chord = sum(np.roll(pluck(pitch, samples, rate), start) for pitch, start in ((147, 0), (185, 900), (220, 1800)))
    field = up.audio(0.3 * np.asarray(chord), rate=rate)
    result = up.fit(field, steps=steps)
    finer = result.render((2 * samples,))
    soundfile.write("sound.wav", finer, 2 * rate)

    figure, (whole, detail) = plt.subplots(2, 1, figsize=(9, 4), layout="constrained")
    whole.plot(np.arange(samples) / rate, field.values[:, 0], linewidth=0.3)
    whole.set(title="the sound", xlabel="seconds")
    part = slice(samples // 4, samples // 4 + 60)
    detail.plot(
        (np.arange(2 * samples)[2 * part.start : 2 * part.stop] + 0.5) / 2 / rate, finer[2 * part.start : 2 * part.stop]
    )
    detail.plot((np.arange(samples)[part] + 0.5) / rate, field.values[part], ".", color="C1")
    detail.set(title="60 samples, and the network between them", xlabel="seconds")
    figure.savefig("sound.png")
    assert result.metrics is not None
    print(f"{samples:,} samples: {result.metrics.snr_db:.2f} dB SNR after {result.steps} steps")
    return result.metrics.snr_db


if __name__ == "__main__":
    main()
