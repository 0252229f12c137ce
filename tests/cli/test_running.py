import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import jax
import numpy as np
import pytest
import soundfile
from safetensors import safe_open
from safetensors.numpy import load_file

from helpers.small import TINY, TINY_ARGUMENTS, TINY_SOUND, names, write_sound
from uniphase.cli.display import Watcher
from uniphase.cli.fit import prepare
from uniphase.cli.options import Options
from uniphase.cli.running import run as run_job
from uniphase.jax.files import load_network


def test_a_fit_leaves_all_that_is_known_of_it(here):
    job = prepare("camera", Options(**TINY, eval_size=24), seed=3)
    result = run_job(job)
    assert names(here) == ["camera.fit.png", "camera.uniphase"]
    saved = load_network("camera.uniphase")
    assert saved.metrics == result.metrics.to_dict()
    assert saved.training == {
        "signal": "camera",
        "scheme": "uniform-phase",
        "options": {"recipe": "default", "eval_size": 24, **TINY},
        "recipe": asdict(job.recipe),
        "seed": 3,
        "steps": 20,
        "seconds": result.seconds,
        "stop": "steps",
        "test_metrics": result.test_metrics.to_dict(),
    }
    for a, b in zip(jax.tree.leaves(saved.network), jax.tree.leaves(result.network), strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_picture_and_the_sound_are_of_what_was_measured(here, monkeypatch):
    """And not evaluated again."""
    from uniphase.cli import measuring as module

    measured, drawn, measure = [], [], module.measure
    monkeypatch.setattr(module, "measure", lambda *args: measured.append(measure(*args)) or measured[-1])
    monkeypatch.setattr("uniphase.plots.preview.write_preview", lambda *args: drawn.append(args[2]))
    write_sound(here / "a.wav")
    result = run_job(prepare("a.wav", Options(**TINY_SOUND)))
    (found,) = measured
    np.testing.assert_array_equal(drawn[0], found.prediction)
    np.testing.assert_array_equal(result.prediction, found.prediction)
    written, _ = soundfile.read("a.fit.wav", always_2d=True)
    np.testing.assert_allclose(written, np.clip(found.prediction, -1, 1), atol=1 / 2**15)  # 16 bits


class Stages(Watcher):
    """Notes what it is told, and is interrupted at a stage."""

    def __init__(self, stop: str = ""):
        self.seen, self.stop = [], stop

    def stage(self, name, done=0, total=0):
        self.seen.append(name)
        if name == self.stop:
            raise KeyboardInterrupt


def test_the_network_is_saved_before_it_is_measured(here):
    """Whoever stops it then has lost no step, and is told where the network is. Metrics say that it is finished."""
    for stop in ("measuring", "drawing"):
        watcher = Stages(stop)
        with pytest.raises(KeyboardInterrupt, match=r"the network is in camera.uniphase"):
            run_job(prepare("camera", Options(**TINY, eval_size=16), force=True), watcher=watcher)
        saved = load_network("camera.uniphase")
        assert (saved.metrics, saved.training["steps"]) == (None, 20)
    assert list(dict.fromkeys(watcher.seen)) == ["compiling", "measuring", "comparing", "writing", "drawing"]


def test_where_time_is_short_some_samples_are_measured(run, here, monkeypatch):
    """As many as there is time for; of a sound, what was not evaluated is not written."""
    monkeypatch.setattr("uniphase.cli.measuring.sample_seconds", lambda *_: 1.0)
    monkeypatch.setattr("uniphase.fitting.budget._LEAST", 60)
    write_sound(here / "a.wav")
    code, out, _ = run("fit", "a.wav", *TINY_ARGUMENTS, "--optimizer", "adam", "--seconds", "0.1")
    assert code == 0
    assert "\nmeasured on 43 of 300 samples, for lack of time, without SSIM\n" in out  # 0.8 · 60, every seventh
    assert "\nno a.fit.wav, for lack of time; uniphase render a.uniphase writes the sound\n" in out
    assert names(here) == ["a.fit.png", "a.uniphase", "a.wav"]
    saved = load_network("a.uniphase")
    assert saved.metrics is not None
    assert (saved.training["measured"], saved.metrics["ssim"]) == (43, None)
    assert saved.metrics["snr_db"] is not None
    assert run("render", "a.uniphase")[0] == 0


def test_a_log_is_continued(run, here, monkeypatch):
    monkeypatch.setattr("uniphase.fitting.plan._TELL_SECONDS", 0.0)
    options = ["camera", "--size", "16", "--eval-size", "16", *TINY_ARGUMENTS, "--log", "run.csv"]
    job = prepare("camera", Options(**TINY, eval_size=16))

    class Impatient(Watcher):
        def progress(self, progress):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_job(job, watcher=Impatient(), log="run.csv")
    assert run("fit", *options, "--resume", "--json")[0] == 0
    rows = [line.split(",") for line in Path("run.csv").read_text().splitlines()]
    assert rows[0] == ["step", "seconds", "loss", "snr_db", "rate", "steps_per_second"]
    assert [row[0] for row in rows[1:]] == ["10", "20"]
    assert run("fit", *options, "--force", "--json")[0] == 0
    assert len(Path("run.csv").read_text().splitlines()) == 3


KILLED = """
import sys
from uniphase.cli.display import Watcher
from uniphase.cli.fit import prepare, run
from uniphase.cli.options import Options
options = Options(size=16, eval_size=16, width=16, depth=1, steps=int(sys.argv[1]))
run(prepare("camera", options, output="killed.uniphase", resume=True), checkpoint_seconds=0.0)
"""


def steps_done(state: Path) -> int:
    if not state.exists():
        return 0
    header = json.loads(safe_open(state, "numpy").metadata()["uniphase-state"])["header"]
    return header["numbers"]["step"]


def assert_same_bits(found: str, expected: str) -> None:
    tensors, others = load_file(found), load_file(expected)
    assert tensors.keys() == others.keys()
    for name in others:
        assert tensors[name].tobytes() == others[name].tobytes()


def test_a_fit_killed_again_and_again_ends_with_the_same_bits(here):
    """Whatever it was doing: the state that each kill leaves is resumed to the end."""
    steps, done, state = 600, 0, here / "killed.uniphase.part"
    options = Options(**TINY | {"eval_size": 16, "steps": steps})
    run_job(prepare("camera", options, output="whole.uniphase"))
    cache = {"JAX_COMPILATION_CACHE_DIR": str(jax.config.jax_compilation_cache_dir)}
    environment = os.environ | cache | {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}  # to start sooner
    for kill in range(2):
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(steps)], env=environment, stderr=subprocess.PIPE, text=True
        )
        while steps_done(state) < done + 100:
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.01)
        time.sleep(0.003 * kill)  # in the middle of a step, or of writing the state
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        process.stderr.close()
        assert done < steps_done(state) < steps
        assert not (here / "killed.uniphase").exists()
        done = steps_done(state)
        shutil.copy(state, "copy.uniphase.part")
        run_job(prepare("camera", options, output="copy.uniphase", resume=True, force=True))
        assert not Path("copy.uniphase.part").exists()
        assert_same_bits("copy.uniphase", "whole.uniphase")


def test_an_interrupt_saves_and_says_how_to_continue(run, here, monkeypatch):
    """A real signal, in the middle of a fit."""
    options = ["camera", "--size", "16", *TINY_ARGUMENTS[:-1], "1000000"]
    with monkeypatch.context() as patch:
        before = signal.signal(signal.SIGINT, signal.default_int_handler)  # shells may have it ignored
        patch.setattr("uniphase.cli.terminal.progress_cells", lambda *_: signal.raise_signal(signal.SIGINT) or {})
        code, _, err = run("fit", *options)
        signal.signal(signal.SIGINT, before)
    assert code == 130
    assert err.splitlines()[-1] == "uniphase: interrupted; the same command with --resume continues the fit"
    assert "Traceback" not in err
    assert names(here) == ["camera.uniphase.part"]
    code, _, err = run("fit", *options)
    assert (code, "camera.uniphase.part: left by an interrupted fit; pass --resume" in err) == (1, True)
    code, out, _ = run("fit", *options, "--resume", "--seconds", "0.1", "--json")
    assert (code, json.loads(out)["stop"]) == (0, "seconds")
    assert names(here) == ["camera.fit.png", "camera.uniphase"]


def test_a_state_is_neither_lost_nor_used_for_another_fit(here):
    job = prepare("camera", Options(**TINY))

    class Impatient(Watcher):
        def progress(self, progress):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_job(job, watcher=Impatient())
    assert names(here) == ["camera.uniphase.part"]
    message = "left by an interrupted fit; pass --resume to continue it, --force to discard it"
    with pytest.raises(FileExistsError, match=message):
        prepare("camera", Options(**TINY))
    other = prepare("camera", Options(**TINY | {"lr": 0.01}), resume=True)
    with pytest.raises(ValueError, match="a checkpoint of another run"):
        run_job(other)
    assert names(here) == ["camera.uniphase.part"]
    assert run_job(prepare("camera", Options(**TINY), resume=True)).steps == 20
    assert names(here) == ["camera.fit.png", "camera.uniphase"]


@pytest.mark.filterwarnings("ignore:the loss exploded")
def test_a_fit_that_diverges_leaves_nothing(here):
    job = prepare("camera", Options(**TINY | {"lr": 1e9}))
    with pytest.raises(ValueError, match=r"camera: the fit diverged .* start with a lower one, with --lr"):
        run_job(job, checkpoint_seconds=0.0)
    assert names(here) == []
