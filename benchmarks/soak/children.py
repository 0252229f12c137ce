"""Work in a forked child with limits of its own, and whether it ended as a command should.

Forking a process that has imported everything saves the seconds in which a new one would do so. The parent must not
have started JAX's threads, which do not survive a fork.
"""

import atexit
import contextlib
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from .records import ROOT

# What a command may take. A busy machine must not make a hang of a slow start, so it is the time of the processor.
SECONDS, BYTES = 10.0, 2 << 30
# A child that sleeps uses no processor: so long it may.
PATIENCE = 60.0
# Address space, far above what may be used, so that the machine is safe from what does not hold to that.
ADDRESSES = 8 << 30


class Ended(NamedTuple):
    """How a child ended: its exit code, or minus a signal; what it printed; what it used."""

    code: int
    out: str
    err: str
    seconds: float
    bytes: int


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A temporary directory. That of `tempfile` would be removed by every child at its exit as well."""
    directory = Path(tempfile.mkdtemp(prefix="soak-"))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def in_child(work: Callable[[], object], directory: Path, logs: Path, patience: float = PATIENCE) -> Ended:
    """Run something in a forked child, in a directory. Its output is written to files in `logs`."""
    _, wait = start_child(work, directory, logs)
    return wait(patience)


def start_child(work: Callable[[], object], directory: Path, logs: Path) -> tuple[int, Callable[[float], Ended]]:
    """Start a child; return its process and a function that waits for it, at most for some seconds."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        _be_child(work, directory, logs)
    descriptor = os.pidfd_open(pid)

    def wait(patience: float) -> Ended:
        ended = _ends(descriptor, pid, patience)
        if not ended:
            os.kill(pid, signal.SIGKILL)
        _, status, used = os.wait4(pid, 0)
        os.close(descriptor)
        out, err = ((logs / name).read_text(errors="replace") for name in ("out", "err"))
        code = os.waitstatus_to_exitcode(status) if ended else -signal.SIGALRM
        return Ended(code, out, err, used.ru_utime + used.ru_stime, 1024 * used.ru_maxrss)

    return pid, wait


def _ends(descriptor: int, pid: int, patience: float) -> bool:
    """Whether a child ends before it has slept for so long. One that waits for a busy processor does not sleep."""
    slept, step = 0.0, min(1.0, patience)
    while slept < patience:
        if select.select([descriptor], [], [], step)[0]:
            return True
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        slept += 0.0 if state == "R" else step
    return False


def _be_child(work: Callable[[], object], directory: Path, logs: Path) -> None:
    code = 70
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a soak in the background ignores it, or under nohup
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        for name, target in (("out", 1), ("err", 2)):
            stream = os.open(logs / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(stream, target)
        os.chdir(directory)
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
        resource.setrlimit(resource.RLIMIT_CPU, (int(SECONDS * 6), int(SECONDS * 6)))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        code = _exit_code(work)
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        atexit._run_exitfuncs()  # temporary files are removed here
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _exit_code(work: Callable[[], object]) -> int:
    try:
        work()
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:
        traceback.print_exc()
        return 70
    return 0


def complaint(ended: Ended) -> str | None:
    """What is wrong with how a command ended: it should end well, or with one clear line and an exit code."""
    if "Traceback (most recent call last)" in ended.err:
        lines = ended.err.strip().splitlines()
        frames = [line for line in lines if line.startswith("  File ") and "uniphase" in line]
        where = [line.strip().replace(f"{ROOT}/", "") for line in frames]
        return f"traceback: {lines[-1]} ({where[-1] if where else 'no frame of uniphase'})"
    if ended.code == -signal.SIGALRM:
        return f"hangs for {PATIENCE:.0f} s"
    if ended.code < 0:
        return f"ended by {signal.Signals(-ended.code).name}: {ended.err[-200:]}"
    if ended.seconds > SECONDS:
        return f"takes {ended.seconds:.0f} s"
    if ended.bytes > BYTES:
        return f"takes {ended.bytes / 2**30:.1f} GB"
    return _talk(ended)


def _talk(ended: Ended) -> str | None:
    """Libraries in C print warnings of their own, which cannot be kept from the terminal; ours is a single line."""
    lines = [line for line in ended.err.splitlines() if line.startswith("uniphase: ")]
    lines = [line for line in lines if not line.startswith("uniphase: note: ")]
    if ended.code == 0:
        return f"prints {lines[0]!r}" if lines else None
    if len(lines) != 1 or not ended.err.rstrip("\n").endswith(lines[0]):
        return f"exit code {ended.code}, but the last of the output is {ended.err[-200:]!r}"
    if not lines[0].isprintable():
        return f"prints control characters: {lines[0]!r}"
    return None
