from uniphase.lab.experiments.narrow import EXPERIMENT
from uniphase.lab.fits import FitRun
from uniphase.lab.runs import execute
from uniphase.lab.store import Store


def test_the_protocol_is_the_papers():
    runs = [run for run in EXPERIMENT.runs("paper", 1, Store("none")) if isinstance(run, FitRun)]
    assert {(run.width, run.depth, run.steps, run.rate) for run in runs} == {(16, 11, 3000, 1e-4)}


def test_the_bicubic_row_is_that_of_the_papers_grids():
    """A cubic spline through 128² samples: 0.00282 on the paper's grids."""
    (reference,) = [run for run in EXPERIMENT.runs("paper", 1, Store("none")) if run.kind == "reference"]
    assert round(execute(reference).metrics["eval_mse"], 5) == 0.00282
