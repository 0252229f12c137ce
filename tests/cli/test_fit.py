import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import jax
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file

from helpers.small import TINY, names
from uniphase.cli.fit import prepare, run
from uniphase.cli.subjects import Options
from uniphase.jax.files import load_network


def test_a_fit_leaves_all_that_is_known_of_it(here):
    job = prepare("camera", Options(**TINY, eval_size=24), seed=3)
    result = run(job)
    assert names(here) == ["camera.fit.png", "camera.uniphase"]
    saved = load_network("camera.uniphase")
    assert saved.metrics == result.metrics.to_dict()
    assert saved.training == {
        "signal": "camera",
        "scheme": "uniform-phase",
        "recipe": asdict(job.recipe),
        "seed": 3,
        "steps": 20,
        "seconds": result.seconds,
        "stop": "steps",
        "test_metrics": result.test_metrics.to_dict(),
    }
    for a, b in zip(jax.tree.leaves(saved.network), jax.tree.leaves(result.network), strict=True):
        np.testing.assert_array_equal(a, b)


KILLED = """
import sys
from uniphase.cli.fit import prepare, run
from uniphase.cli.subjects import Options
options = Options(size=8, eval_size=8, width=8, depth=1, steps=int(sys.argv[1]))
run(prepare("camera", options, output="killed.uniphase", resume=True), checkpoint_seconds=0.0)
"""


def steps_done(state: Path) -> int:
    if not state.exists():
        return 0
    return json.loads(safe_open(state, "numpy").metadata()["uniphase-state"])["header"]["numbers"]["step"]


def test_a_fit_killed_again_and_again_ends_with_the_same_bits(here):
    steps, done, state = 2000, 0, here / "killed.uniphase.part"
    command = [sys.executable, "-c", KILLED, str(steps)]
    cache = {"JAX_COMPILATION_CACHE_DIR": str(here / "cache"), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    environment = os.environ | cache  # to start sooner
    for kill in range(3):
        process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 60
        while steps_done(state) < done + 100 and time.monotonic() < deadline:
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.01)
        time.sleep(0.003 * kill)  # in the middle of a step, or of writing the state
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        process.stderr.close()
        assert done < steps_done(state) < steps
        assert not (here / "killed.uniphase").exists()
        done = steps_done(state)
    subprocess.run(command, env=environment, check=True, capture_output=True)
    whole = Options(size=8, eval_size=8, width=8, depth=1, steps=steps)
    run(prepare("camera", whole, output="whole.uniphase"))
    assert not state.exists()
    killed, whole = load_file("killed.uniphase"), load_file("whole.uniphase")
    assert killed.keys() == whole.keys()
    for name in whole:
        assert killed[name].tobytes() == whole[name].tobytes()


def test_a_state_is_neither_lost_nor_used_for_another_fit(here):
    job = prepare("camera", Options(**TINY))

    def interrupt(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(job, callback=interrupt)
    assert names(here) == ["camera.uniphase.part"]
    with pytest.raises(FileExistsError, match="left by an interrupted fit; pass --resume to go on, --force to drop it"):
        prepare("camera", Options(**TINY))
    other = prepare("camera", Options(**TINY | {"lr": 0.01}), resume=True)
    with pytest.raises(ValueError, match="a checkpoint of another fit"):
        run(other)
    assert names(here) == ["camera.uniphase.part"]
    assert run(prepare("camera", Options(**TINY), resume=True)).steps == 20
    assert names(here) == ["camera.fit.png", "camera.uniphase"]


def test_a_finished_fit_is_not_replaced_by_resume(here):
    (here / "camera.uniphase").write_text("mine")
    with (
        pytest.warns(UserWarning, match="there is no interrupted fit; starting one"),
        pytest.raises(FileExistsError, match="exists; pass --force"),
    ):
        prepare("camera", Options(**TINY), resume=True)


@pytest.mark.filterwarnings("ignore:the loss exploded")
def test_a_fit_that_diverges_leaves_nothing(here):
    job = prepare("camera", Options(**TINY | {"lr": 1e9}))
    with pytest.raises(ValueError, match=r"camera: the loss exploded .* lower it with --lr"):
        run(job, checkpoint_seconds=0.0)
    assert names(here) == []


def test_seeds_that_numbers_of_32_bits_cannot_hold():
    for seed in (-1, 2**32):
        with pytest.raises(ValueError, match=f"seed is {seed}; it must lie between"):
            prepare("camera", Options(), seed=seed)
