from uniphase.initialization.schemes import SCHEMES


def test_schemes_lists_all_and_shows_each(run):
    code, out, _ = run("schemes")
    assert code == 0
    for name in SCHEMES:
        assert name in out
        code, shown, _ = run("schemes", name)
        assert code == 0
        assert "Reference: " in shown
        assert f"{name}: 2 → 1, " in shown
