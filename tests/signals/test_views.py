from uniphase.signals.views import camera_nodes


def test_what_a_camera_would_see():
    assert camera_nodes((64, 64), (64, 64), "averages") == (4, 4)
    assert camera_nodes((64, 64), (64, 64), "points") == (1, 1)
    assert camera_nodes((64, 64), (16, 128), "averages") == (10, 1)
    assert camera_nodes((64,), (16,), "points") == (10,)
