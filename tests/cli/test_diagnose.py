import pytest

from helpers.small import TINY, names
from uniphase.cli.diagnose import examine_signal
from uniphase.cli.fit import prepare, run
from uniphase.cli.subjects import Options


def test_a_network_of_a_file_is_examined_where_it_was_fitted(here):
    """A file knows its alignment."""
    run(prepare("camera", Options(**TINY, align="corners")))
    saved = examine_signal("camera", Options(size=16), network="camera.uniphase")
    same = examine_signal("camera", Options(size=16, align="corners"), network="camera.uniphase")
    other = examine_signal("camera", Options(size=16, align="centers"), network="camera.uniphase")
    assert saved.to_dict() == same.to_dict() != other.to_dict()


def test_a_picture_is_drawn_only_if_asked_for_and_never_replaced(here):
    examine_signal("camera", Options(size=16, width=16))
    assert names(here) == []
    examine_signal("camera", Options(size=16, width=16), output="a.png")
    assert names(here) == ["a.png"]
    with pytest.raises(FileExistsError, match="exists; pass --force"):
        examine_signal("camera", Options(size=16, width=16), output="a.png")
    with pytest.raises(ValueError, match=r"a.jpg: the suffix is '.jpg'; use .png"):
        examine_signal("camera", Options(size=16, width=16), output="a.jpg")
