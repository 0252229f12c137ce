"""What `uniphase compare` does: several initializations side by side."""

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .. import plots as figures
from ..initialization.schemes import get_scheme
from ..recipe import Recipe
from ..signals.fields import Grid
from ..signals.metrics import Metrics, evaluate
from ..signals.splines import cubic_spline
from ..training.loop import Diverged, Fit, Progress, fit
from .outputs import require_writable, writing
from .subjects import Options, choose_recipe, draw_network, evaluate_at, load_subject, shown_part


class Row(NamedTuple):
    """A row of a comparison: the metrics for every seed. Both are empty if no run ended well."""

    scheme: str
    train: tuple[Metrics, ...]
    test: tuple[Metrics, ...]


class Comparison(NamedTuple):
    """The rows, how all were trained, and the files written."""

    rows: tuple[Row, ...]
    recipe: Recipe
    outputs: tuple[Path, ...]


def compare(
    signal: str,
    schemes: Sequence[str],
    options: Options,
    *,
    seeds: int = 1,
    output: str | None = None,
    force: bool = False,
    callback: Callable[[str, Progress], Any] | None = None,
) -> Comparison:
    """Train several schemes on a signal, all with the same recipe, and draw them side by side.

    **Arguments:**

    - `signal`, `schemes`: a name or a file, and the names of the initializations.
    - `seeds`: the number of runs of each.
    - `output`: the picture, a PNG; or a directory for it. The learning curves go beside it.
    - `force`: whether files that exist may be replaced.
    - `callback`: called with the name of the run and the `Progress`.

    **Returns:**

    A `Comparison`, whose last row is the cubic spline through the training samples. It has no metrics if there is no
    test field.

    !!! example
        ```python
        rows = compare("camera", ["uniform-phase", "sm20"], Options(size=16, steps=20)).rows
        ```
    """
    schemes = [get_scheme(name).name for name in schemes]
    for name in schemes:
        if schemes.count(name) > 1:
            raise ValueError(f"schemes has {name!r} {schemes.count(name)} times; name each once, or pass --seeds")
    if seeds < 1:
        raise ValueError(f"seeds is {seeds}; it must be at least 1")
    outputs = _comparison_outputs(signal, output)
    require_writable(outputs, signal, replace=force)
    subject = load_subject(signal, options)
    field, test, moments = subject
    _, first = draw_network(subject, schemes[0], options, 0)
    recipe = choose_recipe(field, first, options)
    rows, columns, losses = [], {}, {}
    for scheme in schemes:
        results = []
        for seed in range(seeds):
            name = scheme if seeds == 1 else f"{scheme}, seed {seed}"
            tell = None if callback is None else lambda progress, name=name: callback(name, progress)
            _, network = draw_network(subject, scheme, options, seed)
            try:
                results.append(fit(network, field, recipe=recipe, test=test, moments=moments, seed=seed, callback=tell))
            except Diverged as error:
                warnings.warn(f"{name}: left out, as {error}", stacklevel=2)
        rows.append(_row(scheme, results))
        if results:
            columns[scheme] = _column(results[0], field, test)
            losses[scheme] = [result.losses for result in results]
    rows.append(Row("bicubic", (), () if test is None else (evaluate(cubic_spline(field, test), test),)))
    if not columns:
        raise ValueError(f"{signal}: every run diverged; pass a smaller --lr than {recipe.learning_rate:g}")
    with writing(outputs[0]):
        figures.comparison(outputs[0], shown_part(field), None if test is None else shown_part(test), columns)
        figures.learning_curves(outputs[1], losses)
    return Comparison(tuple(rows), recipe, outputs)


def _comparison_outputs(signal: str, output: str | None) -> tuple[Path, Path]:
    path = Path("." if output is None else output)
    path = path / f"{Path(signal).stem}.compare.png" if path.is_dir() else path
    if path.suffix.lower() != ".png":
        raise ValueError(f"{path}: the suffix is {path.suffix!r}; use .png, or the name of a directory that exists")
    return path, path.with_suffix(".curves.png")


def _row(scheme: str, results: Sequence[Fit]) -> Row:
    test = tuple(result.test_metrics for result in results if result.test_metrics is not None)
    return Row(scheme, tuple(result.metrics for result in results), test)


def _column(result: Fit, field: Grid, test: Grid | None) -> figures.Column:
    tested = None if test is None else evaluate_at(result.network, shown_part(test))
    return figures.Column(evaluate_at(result.network, shown_part(field)), tested, result.metrics, result.test_metrics)
