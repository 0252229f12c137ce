"""How the time of a fit is divided between training and what comes after the last step."""

from dataclasses import dataclass

# Measuring takes at most this share of a limited time, and then of at least this many samples.
_SHARE, _LEAST = 0.25, 1 << 12


@dataclass(frozen=True)
class Budget:
    """The time of a fit, from the first step until everything is written.

    **Arguments:**

    - `seconds`: for all of it. `None`: as long as it takes.
    - `samples`: that are to be measured.
    - `sample_seconds`: what one of them takes.
    - `other_seconds`: for all else after the last step, such as drawing.

    !!! example
        ```python
        from uniphase.fitting.budget import Budget

        budget = Budget(60.0, samples=12_000_000, sample_seconds=1e-5, other_seconds=2.0)
        budget.training  # 43.0: measuring all would take two minutes, and gets a quarter of one
        budget.affordable(43.0)  # 1,500,000
        ```
    """

    seconds: float | None
    samples: int
    sample_seconds: float
    other_seconds: float

    @property
    def measuring(self) -> float:
        """The time that is kept for measuring: for all samples, if that is no more than a quarter of the whole."""
        whole = self.samples * self.sample_seconds
        return whole if self.seconds is None else min(whole, _SHARE * self.seconds)

    @property
    def after(self) -> float:
        """The time that is kept for all that comes after the last step."""
        return self.measuring + self.other_seconds

    @property
    def training(self) -> float | None:
        """The time for training: what is left, and no less than half of the whole."""
        return None if self.seconds is None else max(self.seconds - self.after, self.seconds / 2)

    def affordable(self, spent: float) -> int:
        """How many samples can be measured, if so many seconds are spent already."""
        if self.seconds is None or self.samples * self.sample_seconds <= _SHARE * self.seconds:
            return self.samples
        left = self.seconds - self.other_seconds - spent
        return min(self.samples, max(_LEAST, int(left / self.sample_seconds)))

    def expected(self, step_seconds: float, steps: int) -> float:
        """How long a fit of so many steps takes altogether."""
        whole = steps * step_seconds
        return self.after + (whole if self.training is None else min(whole, self.training))
