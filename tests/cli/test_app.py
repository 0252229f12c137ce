import signal
import subprocess
import sys

import pytest

from uniphase.cli import main
from uniphase.cli.app import app
from uniphase.signals.fields import Grid

COMMANDS = [
    "fit",
    "render",
    "view",
    "export",
    "info",
    "compare",
    "diagnose",
    "moments",
    "schemes",
    "reproduce",
    "report",
]


def test_no_memory_is_one_line_and_other_errors_are_not_hidden(run, monkeypatch):
    def fail(message, kind=RuntimeError):
        monkeypatch.setattr("uniphase.cli.subjects.load", lambda *_, **__: (_ for _ in ()).throw(kind(message)))

    fail("Unable to allocate 71.1 PiB", MemoryError)
    assert run("moments", "camera") == (1, "", "uniphase: Unable to allocate 71.1 PiB; pass a smaller --size\n")

    fail("RESOURCE_EXHAUSTED: Out of memory allocating 4000000000000 bytes.\nmore")
    assert run("moments", "camera") == (1, "", "uniphase: out of memory; pass a smaller --width, --batch or --size\n")
    fail("", MemoryError)
    assert run("moments", "camera") == (1, "", "uniphase: out of memory; pass a smaller --size\n")
    fail("a mistake of ours")
    with pytest.raises(RuntimeError, match="a mistake of ours"):
        main(["moments", "camera"])


HELP = f"""
import sys
from uniphase.cli.app import app
for command in ([], *[[name] for name in {COMMANDS}]):
    app([*command, "--help"], result_action="return_value")
heavy = ("jax", "numpy", "scipy", "skimage", "matplotlib", "PIL", "soundfile", "safetensors")
print([name for name in heavy if name in sys.modules])
"""


def test_no_help_needs_jax_or_numpy():
    out = subprocess.run([sys.executable, "-c", HELP], capture_output=True, text=True, check=True).stdout
    assert out.endswith("[]\n")
    for command in COMMANDS:
        assert f"Usage: uniphase {command}" in out


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_shows_how_it_is_used(run, command):
    assert list(app).count(command) == 1
    code, out, _ = run(command, "--help")
    assert code == 0
    assert "For example:" in out
    assert out.count(f" uniphase {command}") >= 2  # the usage, and examples


def test_the_installed_command_runs():
    from importlib.metadata import entry_points

    (command,) = entry_points(group="console_scripts", name="uniphase")
    assert command.value == "uniphase.cli:main"
    assert command.load() is main


# What a machine without some packages says to each of the commands that are given as one line each.
WITHOUT = """
import sys
missing, *commands = sys.argv[1:]
sys.modules.update(dict.fromkeys(missing.split(",")))
from uniphase.cli import main
for command in commands:
    try:
        main(command.split())
    except SystemExit as stop:
        print(stop.code or 0, flush=True)
"""


def run_without(missing: str, *commands: str) -> tuple[list[str], list[str]]:
    """The lines of the output, where a number ends each command, and of the errors."""
    script = [sys.executable, "-c", WITHOUT, missing, *commands]
    done = subprocess.run(script, capture_output=True, text=True, check=True)
    return done.stdout.splitlines(), done.stderr.splitlines()


def test_without_jax_a_line_says_what_to_install_and_the_rest_works(camera_fit):
    network = camera_fit.directory / "camera.uniphase"
    refused = [
        "fit camera --size 16",
        f"render {network}",
        "compare camera --size 16 --schemes relu",
        "diagnose camera --size 16",
        "reproduce moments",
    ]
    working = ["moments camera --size 16", "schemes sm20", f"info {network}", f"export {network}"]
    out, err = run_without("jax,equinox,optax,jaxlib", *refused, *working)
    assert [line for line in out if line.isdigit()] == ["1"] * len(refused) + ["0"] * len(working)
    assert "uniform-phase: 2 → 1, 337 parameters" in out
    assert len(err) == len(refused)
    for line in err:
        assert line.startswith("uniphase: ")
        assert line.endswith('is not installed, which this command needs; run pip install "uniphase[jax]"')


def test_without_onnx_a_line_says_what_to_install_and_pages_are_written(camera_fit, here):
    network = camera_fit.directory / "camera.uniphase"
    out, err = run_without("onnx", f"export {network} -o a.onnx", f"export {network} -o a.html")
    assert [line for line in out if line.isdigit()] == ["1", "0"]
    line = 'uniphase: onnx is not installed, which this command needs; run pip install "uniphase[export]"'
    assert err == [line]
    assert [path.name for path in here.iterdir()] == ["a.html"]


def test_without_the_extra_a_line_says_what_to_install():
    line = 'uniphase: cyclopts is not installed, which this command needs; run pip install "uniphase[cli]"'
    assert run_without("cyclopts,rich", "--help", "fit camera") == (["1", "1"], [line, line])


def test_what_is_needed_only_in_the_end_is_missed_at_the_beginning(here):
    """A fit draws its picture last."""
    line = 'uniphase: matplotlib is not installed, which this command needs; run pip install "uniphase[cli]"'
    commands = ["fit camera --size 8", "compare camera --size 8 --schemes relu"]
    assert run_without("matplotlib,jax", *commands) == (["1", "1"], [line, line])
    assert list(here.iterdir()) == []


def test_a_package_that_is_no_extra_is_a_traceback(monkeypatch):
    def fail(_):
        raise ModuleNotFoundError("No module named 'nothing'", name="nothing")

    monkeypatch.setattr("uniphase.cli.app.main", fail)
    with pytest.raises(ModuleNotFoundError, match="nothing"):
        main([])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_in_any_phase_is_one_line(run, monkeypatch, number):
    """Also the end of a batch job and a closed terminal."""
    monkeypatch.setattr("uniphase.cli.subjects.load", lambda *_, **__: signal.raise_signal(number))
    usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
    before = signal.signal(number, usual)  # tests in the background, or under nohup, ignore some
    try:
        assert run("moments", "camera") == (130, "", "uniphase: interrupted\n")
        assert signal.getsignal(number) is usual
    finally:
        signal.signal(number, before)


def test_an_interrupt_while_a_module_is_imported_is_one_line(run, monkeypatch):
    """Python 3.11 makes another error of it where a class is being made."""

    class Name:
        def __set_name__(self, owner, name):
            raise KeyboardInterrupt

    def load(*_, **__):
        type("Owner", (), {"name": Name()})

    monkeypatch.setattr("uniphase.cli.subjects.load", load)
    assert run("moments", "camera") == (130, "", "uniphase: interrupted\n")


def test_a_signal_that_is_ignored_stays_so(run, monkeypatch):
    """As under nohup."""
    load = lambda *_, **__: signal.raise_signal(signal.SIGHUP) or Grid([[0.0], [1.0]])  # noqa: E731
    monkeypatch.setattr("uniphase.cli.subjects.load", load)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert run("moments", "camera")[0] == 0
    finally:
        signal.signal(signal.SIGHUP, before)
