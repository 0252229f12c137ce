"""A callback that ends a fit as Ctrl-C does."""


class Interrupt:
    """Raises KeyboardInterrupt after some calls."""

    def __init__(self, calls: int):
        self.calls = calls

    def __call__(self, progress):
        self.calls -= 1
        if self.calls == 0:
            raise KeyboardInterrupt
