import numpy as np
import pytest
import soundfile
from PIL import Image

from helpers.small import TINY, names, write_sound
from uniphase.cli.fit import prepare, run
from uniphase.cli.subjects import Options


def test_the_input_is_never_replaced(here):
    Image.fromarray(np.eye(8, dtype=np.uint8)).save("b.fit.png")
    with pytest.raises(FileExistsError, match="would replace what is read; pass another --output"):
        prepare("b.fit.png", Options(), output="b.uniphase", force=True)
    write_sound(here / "a.wav")
    before = (here / "a.wav").read_bytes()
    run(prepare("a.wav", Options(**TINY | {"size": None})))
    assert (here / "a.wav").read_bytes() == before
    assert names(here) == ["a.fit.png", "a.fit.wav", "a.uniphase", "a.wav", "b.fit.png"]


def test_a_disk_that_is_full_leaves_what_was_there(here, monkeypatch):
    job = prepare("camera", Options(**TINY))
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    message = r"camera.uniphase: cannot be written \(No space left on device\); mend that, and go on with --resume"
    with pytest.raises(OSError, match=message):
        run(job)
    assert names(here) == []
    with pytest.raises(OSError, match=message):
        run(job, checkpoint_seconds=0.0)
    assert names(here) == []


def test_a_sound_that_cannot_be_written(here, monkeypatch):
    write_sound(here / "a.wav")
    job = prepare("a.wav", Options(**TINY))

    def fail(*_, **__):
        raise soundfile.SoundFileRuntimeError("System error.")

    monkeypatch.setattr("soundfile.write", fail)
    with pytest.raises(OSError, match=r"a.uniphase: cannot be written \(System error\.\)"):
        run(job)
