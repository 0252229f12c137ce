"""Videos and volumes."""

import numpy as np
import pytest

from helpers.pages import ENGINES, SMALL, assert_close, expected, make
from helpers.viewer import choose, pixels, press, region, settle, slide, wait_until_ready
from uniphase.signals.fields import Grid


def clip() -> Grid:
    t, y, x = np.mgrid[0:1:6j, 0:1:20j, 0:1:28j]
    values = np.stack([0.5 + 0.4 * np.sin(9 * x + 6 * t), 0.5 + 0.4 * np.cos(7 * y - 6 * t), 0.5 + 0 * x], axis=-1)
    extents = ((-1.0, 1.0), (-20 / 28, 20 / 28), (-1.0, 1.0))
    return Grid(values.astype(np.float32), extents=extents, medium="rgb", rate=10.0, value_range=(0.0, 1.0))


@pytest.mark.parametrize("name", ENGINES)
def test_a_frame_of_a_video_is_that_of_render(name, visit):
    field = clip()
    path, network = make(field)
    page = visit(path, hash=ENGINES[name], **SMALL)
    press(page, "1")
    wanted = expected(network, field)
    for frame in (0, 4):
        slide(page, ".timeline input", frame + 0.5)
        low = region(page)[1:]
        top, left = (round((field.extents[k + 1][0] - low[k, 0]) / field.spacing[k + 1]) for k in range(2))
        assert_close(pixels(page)[top : top + 20, left : left + 28, :3], wanted[frame])
    press(page, ",")
    assert "frame 4" in page.run('document.querySelector(".timeline output").textContent')


def test_a_video_plays_and_stops(visit):
    path, _ = make(clip())
    page = visit(path, **SMALL)
    wait_until_ready(page)
    position = 'Number(document.querySelector(".timeline input").value)'
    page.run('document.querySelector(".timeline button").click()')
    page.wait_for(f"{position} > 2")
    page.run('document.querySelector(".timeline button").click()')
    settle(page)
    at = page.run(position)
    assert page.run('document.querySelector(".timeline button").textContent') == "Play"
    settle(page)
    assert page.run(position) == at


def test_slices_through_each_axis_of_a_volume(visit):
    z, y, x = np.mgrid[-1:1:10j, -1:1:14j, -1:1:18j]
    field = Grid((z + 2 * y + 3 * x)[..., None], extents=((0.0, 20.0), (0.0, 14.0), (0.0, 18.0)))
    path, _ = make(field)
    page = visit(path, **SMALL)
    for axis, box in ((0, (14, 18)), (1, (20, 18)), (2, (20, 14))):
        choose(page, "Through the", axis)
        shown_part = pixels(page)[..., 3] == 255
        height, width = shown_part.any(axis=1).sum(), shown_part.any(axis=0).sum()
        assert height / width == pytest.approx(box[0] / box[1], rel=0.02)  # voxels are twice as thick as they are wide
