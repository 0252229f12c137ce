"""Errors that the user can fix, in one line."""


def explain(error: Exception) -> str | None:
    """What to tell the user about an error, or `None` if it is a mistake of the program."""
    if isinstance(error, MemoryError):
        return f"{str(error) or 'out of memory'}; pass a smaller --size"
    if isinstance(error, ValueError | OSError):
        return str(error)
    if isinstance(error, RuntimeError) and "Out of memory" in str(error):  # JAX has no type of its own for this
        return "out of memory; pass a smaller --width, --batch or --size"
    return None
