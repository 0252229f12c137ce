"""Errors that the user can fix, in one line."""


def explain(error: Exception) -> str | None:
    """What to tell the user about an error, or `None` if it is a mistake of the program."""
    if isinstance(error, MemoryError):
        return f"{printable(str(error)) or 'out of memory'}; pass a smaller --size"
    if isinstance(error, ValueError | OSError):
        return printable(str(error))
    if isinstance(error, RuntimeError) and "Out of memory" in str(error):  # JAX has no type of its own for this
        return "out of memory; pass a smaller --width, --batch or --size"
    return None


def printable(text: str, *, keep: str = "") -> str:
    """Text on one line, with control characters spelled out: what a file says must not command the terminal.

    **Arguments:**

    - `text`: of anyone.
    - `keep`: characters that stay as they are.

    !!! example
        ```python
        printable("two\\nlines in \\x1b[31mred")  # "two lines in \\x1b[31mred", in which nothing is red
        ```
    """
    spelled = (c if c.isprintable() or c in keep else " " if c == "\n" else _spell(c) for c in text)
    return "".join(spelled)


def _spell(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode()
