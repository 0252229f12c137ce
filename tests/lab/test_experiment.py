import numpy as np
import pytest

from helpers.fakes import fill, record
from uniphase.lab.experiment import QUICK, printed, titled
from uniphase.lab.experiments import EXPERIMENT_NAMES, get_experiment
from uniphase.lab.runs import identify
from uniphase.lab.store import Store

# Runs of one seed in the paper's preset, each counted once: what appendix C asks for.
RUNS = {
    "moments": 12,
    "theory": 11 * 3,
    "spectrum": 4 * 4,
    "narrow": 8 + 1,
    "readings": 7 + 1 + 2 + 1,
    "cameraman": 8 + 1,
    "audio": 8 + 1,
    "omega-sweep": 12 * (3 * 21 + 1) + 12,
    "mup-sweep": 3 * 21 + 4 * (6 * 3 + 1) * 21,
    "beyond": 2 * 13,
}


@pytest.mark.parametrize("name", EXPERIMENT_NAMES)
def test_every_experiment_lists_its_runs(name, tmp_path):
    experiment, store = get_experiment(name), Store(tmp_path)
    assert experiment.name == name
    assert len({identify(run) for run in experiment.runs("paper", 1, store)}) == RUNS[name]
    quick = experiment.runs("quick", 1, store)
    assert len(quick) <= len(experiment.runs("paper", 1, store))
    assert len({run.label for run in quick}) == len(quick)


@pytest.mark.parametrize("name", EXPERIMENT_NAMES)
def test_an_empty_store_gives_tables_that_say_so(name, tmp_path):
    for preset in ("quick", "paper"):
        experiment, store = get_experiment(name), Store(tmp_path)
        assert experiment.figures(preset, 1, store) == {}
        for table in experiment.tables(preset, 1, store):
            assert all(len(row) == len(table.header) for row in table.rows)
            assert "better" not in table.markdown()


@pytest.mark.parametrize("name", [name for name in EXPERIMENT_NAMES if name != "moments"])
def test_titles_of_the_quick_preset_say_so(name, tmp_path):
    titles = [table.title for table in get_experiment(name).tables("quick", 1, Store(tmp_path))]
    assert titles
    assert all(QUICK in title for title in titles)
    assert titled("x", "paper") == "x"


@pytest.mark.parametrize("name", ["narrow", "cameraman", "audio", "omega-sweep", "mup-sweep", "spectrum"])
def test_figures_of_the_quick_preset_say_so(name, tmp_path):
    experiment, store = get_experiment(name), Store(tmp_path)
    runs = experiment.runs("quick", 1, store)
    if name == "spectrum":
        store.put(record(runs[0], {}, {"spectrum": np.ones(4)}))
    else:
        fill(store, [run for run in runs if run.kind == "reference" or run.scheme == "uniform-phase"])
    figures = experiment.figures("quick", 1, store)
    assert figures
    assert all(QUICK in figure.get_suptitle() for figure in figures.values())


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match="there is no experiment 'siren'; the known ones are moments, theory"):
        get_experiment("siren")


def test_printed_numbers_are_strings():
    assert printed()["cameraman"]["uniform-phase"]["eval_snr_db"] == "14.89"
    assert printed()["omega-sweep"]["skin/lab"]["cvp26-0"] == {"eval_mse": "145.37", "omega": "8208"}
