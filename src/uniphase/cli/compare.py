"""`uniphase compare`: several initializations side by side on one signal."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from . import terminal
from .options import Force, Json, Options, Output, Signal

if TYPE_CHECKING:
    from ..fitting.plan import Progress
    from ..initialization.blueprint import Blueprint
    from ..plots.comparison import Column
    from ..recipe import Recipe
    from ..signals.fields import Grid
    from ..signals.metrics import Metrics
    from ..training.result import Fit
    from .subjects import Subject


def compare(
    signal: Signal,
    /,
    *,
    schemes: str,
    seeds: int = 1,
    options: Options | None = None,
    output: Output = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Train several initializations on a signal by the same rule, and show the results side by side.

    The default recipe was chosen on uniform-phase networks; --recipe paper is the one that the paper uses for its
    comparisons. --omega applies to the schemes that have a frequency.

    For example:

        uniphase compare camera --size 128 --schemes uniform-phase,sm20,relu --seeds 3
        uniphase compare photo.jpg --size 256 --schemes uniform-phase,siren --recipe paper

    Parameters
    ----------
    schemes
        Initializations, separated by commas; `uniphase schemes` lists them.
    seeds
        Number of runs of each scheme.
    output
        Picture (.png), or an existing directory for it. Default: the name of the signal with .compare.png, in the
        current directory. The learning curves are written next to it.
    """
    if json:
        warnings.simplefilter("ignore", UserWarning)
    with terminal.fit_progress(quiet=json) as tell:
        callback = None if tell is None else lambda name, progress: tell(progress, name)
        names, options = [name.strip() for name in schemes.split(",")], options or Options()
        result = compare_schemes(signal, names, options, seeds=seeds, output=output, force=force, callback=callback)
    if json:
        rows = [
            {"scheme": row.scheme} | {part: _per_run(getattr(row, part)) for part in ("train", "test")}
            for row in result.rows
        ]
        recipes = {scheme: asdict(recipe) for scheme, recipe in result.recipes.items()}
        terminal.print_json({"rows": rows, "recipe": recipes, "output": list(map(str, result.outputs))})
        return
    header = ("scheme", "train MSE", "train SNR dB", "test MSE", "test SNR dB")
    *trained, spline = result.rows
    rows = [(row.scheme, *_spread(row.train, "diverged"), *_spread(row.test, "—")) for row in trained]
    terminal.print_table(header, [*rows, (spline.scheme, "exact", "exact", *_spread(spline.test, "not applicable"))])
    print()
    _print_recipes(result.recipes)
    print(f"wrote {', '.join(map(str, result.outputs))}")


def _print_recipes(recipes: "Mapping[str, Recipe]") -> None:
    """One line, or if the recipes differ, one for each scheme."""
    if len(set(recipes.values())) == 1:
        recipes = {"": next(iter(recipes.values()))}
    for scheme, recipe in recipes.items():
        print(f"recipe{f' of {scheme}' if scheme else ''}: {terminal.words(asdict(recipe))}")


def _spread(runs: "Sequence[Metrics]", if_none: str) -> tuple[str, str]:
    """The error and the signal-to-noise ratio over several runs."""
    from ..lab.tables import spread

    if not runs:
        return if_none, if_none
    return spread([run.mse for run in runs], ".2e"), spread([run.snr_db for run in runs], ".2f")


def _per_run(runs: "Sequence[Metrics]") -> dict[str, list] | None:
    return {key: [run.to_dict()[key] for run in runs] for key in terminal.METRICS} if runs else None


class Row(NamedTuple):
    """A row of a comparison: the metrics of every seed. Both are empty if every run diverged."""

    scheme: str
    train: "tuple[Metrics, ...]"
    test: "tuple[Metrics, ...]"


class Comparison(NamedTuple):
    """The rows, the recipe of each scheme, and the files written."""

    rows: tuple[Row, ...]
    recipes: "dict[str, Recipe]"
    outputs: tuple[Path, ...]


def compare_schemes(
    signal: str,
    schemes: Sequence[str],
    options: Options,
    *,
    seeds: int = 1,
    output: str | None = None,
    force: bool = False,
    callback: "Callable[[str, Progress], Any] | None" = None,
) -> Comparison:
    """Train several schemes on a signal, each with the recipe that follows for its network, and draw the results.

    **Arguments:**

    - `signal`, `schemes`: a name or a file, and the names of the initializations.
    - `seeds`: the number of runs of each.
    - `output`: the picture, a PNG; or a directory for it. The learning curves are written next to it.
    - `force`: whether existing files may be replaced.
    - `callback`: called with the name of the run and the `Progress`.

    **Returns:**

    A `Comparison`, whose last row is the cubic spline through the training samples. It has no metrics if there is no
    test field.

    !!! example
        ```python
        rows = compare_schemes("camera", ["uniform-phase", "sm20"], Options(size=16, steps=20)).rows
        ```
    """
    from ..initialization.schemes import require_omega
    from ..plots.comparison import write_comparison, write_learning_curves
    from ..plots.drawing import require_matplotlib
    from ..signals.fields import Points
    from ..signals.metrics import evaluate
    from ..signals.splines import cubic_spline
    from .outputs import require_writable, writing
    from .subjects import choose_recipe, load_subject, make_blueprint, shown_part

    require_matplotlib()
    _require_distinct(schemes)
    require_omega(options.omega, schemes)
    if seeds < 1:
        raise ValueError(f"seeds is {seeds}; it must be at least 1")
    outputs = _comparison_outputs(signal, output)
    require_writable(outputs, signal, replace=force)
    subject = load_subject(signal, options)
    field, test = subject.field, subject.test
    if isinstance(field, Points) or isinstance(test, Points):
        raise ValueError(f"{signal}: scattered points, but a comparison shows grids; fit one scheme after the other")
    rows, recipes, columns, losses = [], {}, {}, {}
    for scheme in schemes:
        blueprint = make_blueprint(subject, scheme, options)
        recipes[scheme] = choose_recipe(field, blueprint, options, subject.noise)
        results = _train(subject, blueprint, recipes[scheme], options, seeds, callback)
        rows.append(_row(scheme, results))
        if results:
            columns[scheme] = _column(results[0], field, test)
            losses[scheme] = [result.losses for result in results]
    spline = "bicubic" if field.in_size == 2 else "cubic spline"
    tested = () if test is None or field.missing is not None else (evaluate(cubic_spline(field, test), test),)
    rows.append(Row(spline, (), tested))
    if not columns:
        rate = min(recipe.learning_rate for recipe in recipes.values())
        raise ValueError(f"{signal}: every run diverged; pass a smaller --lr than {rate:g}")
    with writing(outputs[0]):
        write_comparison(outputs[0], shown_part(field), None if test is None else shown_part(test), columns)
        write_learning_curves(outputs[1], losses)
    return Comparison(tuple(rows), recipes, outputs)


def _require_distinct(schemes: Sequence[str]) -> None:
    from ..initialization.schemes import get_scheme

    for name in schemes:
        get_scheme(name)
        if schemes.count(name) > 1:
            raise ValueError(f"schemes has {name!r} {schemes.count(name)} times; name each once, or pass --seeds")


def _train(
    subject: "Subject",
    blueprint: "Blueprint",
    recipe: "Recipe",
    options: Options,
    seeds: int,
    callback: "Callable[[str, Progress], Any] | None",
) -> "list[Fit]":
    """The runs of a scheme that did not diverge."""
    from ..fitting.plan import Diverged
    from ..training.fit import fit
    from .subjects import draw_network, observations

    term, results = observations(subject, blueprint, options), []
    for seed in range(seeds):
        name = blueprint.scheme if seeds == 1 else f"{blueprint.scheme}, seed {seed}"
        tell = None if callback is None else lambda progress, name=name: callback(name, progress)
        network = draw_network(blueprint, seed)
        try:
            results.append(fit(network, term, recipe=recipe, test=subject.test, seed=seed, callback=tell))
        except Diverged as error:
            warnings.warn(f"{name}: left out, because {error}", stacklevel=2)
    return results


def _comparison_outputs(signal: str, output: str | None) -> tuple[Path, Path]:
    from ..signals.paths import stem_of

    path = Path("." if output is None else output)
    path = path / f"{stem_of(signal)}.compare.png" if path.is_dir() else path
    if path.suffix.lower() != ".png":
        raise ValueError(f"{path}: the suffix is {path.suffix!r}; use .png, or the name of an existing directory")
    return path, path.with_suffix(".curves.png")


def _row(scheme: str, results: "Sequence[Fit]") -> Row:
    train = tuple(result.metrics for result in results if result.metrics is not None)
    test = tuple(result.test_metrics for result in results if result.test_metrics is not None)
    return Row(scheme, train, test)


def _column(result: "Fit", field: "Grid", test: "Grid | None") -> "Column":
    from ..plots.comparison import Column
    from .subjects import shown_prediction

    assert result.metrics is not None
    trained = shown_prediction(result.network, field, result.prediction)
    tested = None if test is None else shown_prediction(result.network, test, result.test_prediction)
    return Column(trained, tested, result.metrics, result.test_metrics)
