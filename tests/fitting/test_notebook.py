import math
import subprocess
import sys

import numpy as np
import pytest

from helpers.fits import FIELD, network
from helpers.markup import Seen
from helpers.notebooks import ColabShell, ZMQInteractiveShell, fake_notebook
from helpers.results import plain_result
from uniphase.fitting.notebook import in_notebook, run_visibly
from uniphase.fitting.plan import Diverged, Progress
from uniphase.recipe import Recipe
from uniphase.signals.fields import Grid
from uniphase.training.fit import fit

ADAM = Recipe("adam", 1e-3, 1.0, 30, 64)


def result():
    return plain_result(Grid(np.linspace(0, 1, 12).reshape(3, 4, 1)), lambda x: x[:, :1])


def at(step: int, stop=None, mse: float = 0.5) -> Progress:
    return Progress(step, 600, mse, 3.0103, math.nan, 10.0, 61.4, stop)


@pytest.mark.parametrize(
    ("shell", "expected"), [(ZMQInteractiveShell, True), (ColabShell, True), (object, False), (lambda: None, False)]
)
def test_a_notebook_is_known_by_its_shell(shell, expected, monkeypatch):
    fake_notebook(monkeypatch, shell)
    assert in_notebook() == expected


def test_ipython_is_not_loaded_to_find_out():
    check = (
        "import sys; from uniphase.fitting.notebook import in_notebook; print(in_notebook(), 'IPython' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", check], capture_output=True, text=True).stdout == "False False\n"


def test_a_fit_is_shown_from_its_start_to_its_end(monkeypatch):
    shown, done = fake_notebook(monkeypatch), result()

    def run(callback):
        callback(at(100))
        callback(at(300, mse=0.25))
        callback(at(600, "steps", mse=0.125))
        return done

    assert run_visibly(run, {}) is done
    assert [text for text, _ in shown] == [
        "starting",
        "step 100 of 600 · SNR 3.01 dB · 0:01:01 left",
        "step 300 of 600 · SNR 3.01 dB · 0:01:01 left",
        "step 600 of 600 · SNR 3.01 dB · measuring",
        f"50 steps in 1.5 s · SNR {done.metrics.snr_db:.2f} dB",
    ]
    pages = [Seen(html) for _, html in shown]
    assert [page.tags.count("svg") for page in pages] == [0, 1, 1, 1, 1]
    assert all(page.tags.count("progress") == 1 for page in pages)
    assert [text in page.words for (text, _), page in zip(shown, pages, strict=True)] == [True] * 5
    assert 'value="300" max="600"' in shown[2][1]
    assert "loss 5.0e-01 → 2.5e-01" in pages[2].words
    assert pages[4].paths[0].count("L") == 49  # the losses of all steps


def test_an_interrupt_leaves_where_it_was(monkeypatch):
    shown = fake_notebook(monkeypatch)

    def run(callback):
        callback(at(100))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_visibly(run, {})
    assert shown[-1][0] == "interrupted at step 100 of 600 · SNR 3.01 dB"
    assert Seen(shown[-1][1]).tags.count("svg") == 1


def test_an_error_says_its_kind_and_one_before_the_first_step_leaves_nothing(monkeypatch):
    shown = fake_notebook(monkeypatch)

    def run(callback, steps):
        for step in steps:
            callback(at(step))
        raise Diverged("the fit diverged")

    for steps, words in (([100], "Diverged at step 100 of 600 · SNR 3.01 dB"), ([], "")):
        with pytest.raises(Diverged):
            run_visibly(run, {"steps": steps})
        assert shown[-1][0] == words
    assert shown[-1][1] == ""


@pytest.mark.parametrize("options", [{"callback": None}, {"callback": print}, {"progress": False}])
def test_a_callback_or_silence_can_be_chosen(options, monkeypatch):
    shown, given = fake_notebook(monkeypatch), []

    def run(**options):
        given.append(options)
        return result()

    run_visibly(run, options)
    assert (shown, given) == ([], [options])


def test_long_fits_are_drawn_by_few_points(monkeypatch):
    shown = fake_notebook(monkeypatch)

    def run(callback):
        for step in range(1, 2000):
            callback(at(step, mse=1 / step))
        return result()

    run_visibly(run, {})
    last = Seen(shown[-2][1])
    assert 200 <= last.paths[0].count("L") <= 400
    assert "loss 1.0e+00 → 5.0e-04" in last.words
    assert max(len(html) for _, html in shown) < 10_000


def test_fits_are_shown_in_a_notebook_and_elsewhere_as_before(monkeypatch, capsys):
    fit(network(depth=1), FIELD, recipe=ADAM)
    assert capsys.readouterr().err == ""
    fit(FIELD, width=16, depth=1, recipe=ADAM)
    assert "step 30/30" in capsys.readouterr().err
    shown = fake_notebook(monkeypatch)
    fit(network(depth=1), FIELD, recipe=ADAM)
    fit(FIELD, width=16, depth=1, recipe=ADAM)
    assert [text.partition(" in ")[0] for text, _ in shown].count("30 steps") == 2
    assert capsys.readouterr().err == ""
    count = len(shown)
    fit(network(depth=1), FIELD, recipe=ADAM, callback=None)
    fit(FIELD, width=16, depth=1, recipe=ADAM, progress=False)
    with pytest.raises(ValueError, match="seconds is -1; it must be positive"):
        fit(network(depth=1), FIELD, seconds=-1.0)
    assert len(shown) == count + 2
    assert shown[-1] == ("", "")


CELLS = [
    "import numpy as np, uniphase as up\n"
    "x = np.linspace(0, 1, 64)\n"
    "field = up.Grid(np.outer(x, x)[..., None])\n"
    "result = up.fit(field, width=16, depth=1, recipe=up.Recipe('adam', 1e-3, 1.0, 30, 64))",
    "result",
]


def test_in_a_kernel_of_jupyter(tmp_path, monkeypatch):
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS])
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    live, shown = (cell["outputs"] for cell in notebook["cells"])
    (display,) = live  # one, which was updated, and nothing in the stream of errors
    assert display["output_type"] == "display_data"
    assert display["data"]["text/plain"].startswith("30 steps in ")
    assert Seen(display["data"]["text/html"]).tags.count("svg") == 1
    page = Seen(shown[0]["data"]["text/html"])
    assert page.words[0] == "uniform-phase: 64 × 64 samples of 1 channel, as points"
    assert len(page.images) == 1
