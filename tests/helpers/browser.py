"""A headless Chromium, driven by the DevTools protocol over a pipe: no server, no port, no package.

Whatever a page or one of its workers asks the network for, and every error and warning in the console, is noted.
"""

import base64
import contextlib
import itertools
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from queue import Empty, Queue
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WITHOUT_BROWSER = "Chromium is not installed (Debian: apt-get install chromium)"

_OPTIONS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--hide-scrollbars",
    "--mute-audio",
    "--autoplay-policy=no-user-gesture-required",
    "--remote-debugging-pipe",
]
# Without a GPU, WebGL2 is computed by the CPU, or there is none.
_WEBGL = {
    True: ["--use-angle=swiftshader", "--enable-unsafe-swiftshader"],
    False: ["--disable-gpu", "--disable-software-rasterizer"],
}
# Chromium reads commands from the file descriptor 3, and writes to 4.
_LAUNCH = """
import fcntl, os, sys
spare = [fcntl.fcntl(int(given), fcntl.F_DUPFD, 64) for given in sys.argv[1:3]]  # what is given may be 3 or 4
for number, wanted in zip(spare, (3, 4)):
    os.dup2(number, wanted)
    os.close(number)
os.execv(sys.argv[3], sys.argv[3:])
"""
_SECONDS = 60.0


class BrowserError(Exception):
    """A command that failed, or took too long."""


class Browser:
    """A running Chromium. `open_browser` starts and ends one."""

    def __init__(self, process: subprocess.Popen, commands: int, answers: int):
        self._process, self._commands = process, commands
        self._ids = itertools.count(1)
        self._replies: dict[int, Queue] = {}
        self._pages: dict[str, Page] = {}
        threading.Thread(target=self._read, args=(answers,), daemon=True).start()

    def send(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its result."""
        number, waiting = next(self._ids), Queue()
        self._replies[number] = waiting
        self._post(number, method, session, parameters)
        try:
            reply = waiting.get(timeout=_SECONDS)
        except Empty:
            raise BrowserError(f"{method}: no answer in {_SECONDS:g} s") from None
        if "error" in reply:
            raise BrowserError(f"{method}: {reply['error']['message']}")
        return reply["result"]

    def _post(self, number: int, method: str, session: str | None, parameters: dict[str, Any]) -> None:
        message = {"id": number, "method": method, "params": parameters} | ({"sessionId": session} if session else {})
        os.write(self._commands, json.dumps(message).encode() + b"\0")

    def _read(self, answers: int) -> None:
        rest = b""
        with contextlib.suppress(OSError):
            while block := os.read(answers, 1 << 16):
                *messages, rest = (rest + block).split(b"\0")
                for message in messages:
                    self._receive(json.loads(message))

    def _receive(self, message: dict[str, Any]) -> None:
        if "id" in message:
            if (waiting := self._replies.pop(message["id"], None)) is not None:
                waiting.put(message)
        elif (page := self._pages.get(message.get("sessionId", ""))) is not None:
            page.notice(message["method"], message["params"])

    def enable(self, page: "Page", session: str) -> None:
        """Note what a page or one of its workers does, without waiting, then let it run."""
        self._pages[session] = page
        attach = {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": True}
        for method in ("Runtime.enable", "Log.enable", "Network.enable"):
            self._post(next(self._ids), method, session, {})
        self._post(next(self._ids), "Target.setAutoAttach", session, attach)
        self._post(next(self._ids), "Runtime.runIfWaitingForDebugger", session, {})

    @contextlib.contextmanager
    def page(
        self, path: Path, *, hash: str = "", width: int = 1280, height: int = 800, dark: bool = False
    ) -> "Iterator[Page]":
        """Open a file in a tab of its own."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        self.enable(page, session)
        page.send("Page.enable")
        page.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        page.send("Emulation.setEmulatedMedia", features=[scheme])
        page.send("Page.navigate", url=path.resolve().as_uri() + hash)
        page.wait_for('location.protocol === "file:" && document.readyState === "complete"')
        try:
            yield page
        finally:
            self.send("Target.closeTarget", targetId=target)

    def end(self) -> None:
        self._process.terminate()
        self._process.wait(10)
        os.close(self._commands)


class Page:
    """A tab: what it requests, what its console says, and what a user does in it."""

    def __init__(self, browser: Browser, session: str):
        self._browser, self._session = browser, session
        self.requests: list[str] = []
        self.messages: list[str] = []

    def notice(self, method: str, event: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.requests.append(event["request"]["url"])
        elif method == "Runtime.consoleAPICalled" and event["type"] in ("error", "warning"):
            self.messages.append(" ".join(str(arg.get("value", arg.get("description"))) for arg in event["args"]))
        elif method == "Runtime.exceptionThrown":
            details = event["exceptionDetails"]
            self.messages.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Log.entryAdded" and event["entry"]["level"] in ("error", "warning"):
            self.messages.append(event["entry"]["text"])
        elif method == "Target.attachedToTarget":
            self._browser.enable(self, event["sessionId"])

    @property
    def foreign_requests(self) -> list[str]:
        """Requests for anything but the file itself and what is inside of it."""
        return [url for url in self.requests if not url.startswith(("data:", "blob:"))][1:]

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.send(method, self._session, **parameters)

    def run(self, script: str) -> Any:
        """The value of an expression, or of its promise."""
        result = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise BrowserError(result["exceptionDetails"]["exception"].get("description", script))
        return result["result"].get("value")

    def wait_for(self, condition: str, seconds: float = _SECONDS) -> Any:
        """Wait until an expression is true, and return its value."""
        end = time.monotonic() + seconds
        while not (value := self.run(condition)):
            if time.monotonic() > end:
                raise BrowserError(f"waited {seconds:g} s for {condition}; console: {self.messages}")
            time.sleep(0.02)
        return value

    def key(self, key: str) -> None:
        """Press a key, as seen by what has the focus."""
        text = {"text": key} if len(key) == 1 else {}
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key)

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """An event of the mouse: mousePressed, mouseMoved, mouseReleased or mouseWheel."""
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def touch(self, kind: str, points: list[tuple[float, float]]) -> None:
        """An event of fingers: touchStart, touchMove or touchEnd."""
        fingers = [{"x": x, "y": y, "id": k} for k, (x, y) in enumerate(points)]
        self.send("Input.dispatchTouchEvent", type=kind, touchPoints=fingers)

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot")["data"]))


@contextlib.contextmanager
def open_browser(profile: Path, *, webgl: bool = True) -> Iterator[Browser]:
    """Start a Chromium whose files are in a directory, with or without WebGL, and end it."""
    assert CHROMIUM is not None
    commands, answers = os.pipe(), os.pipe()
    launch = [sys.executable, "-c", _LAUNCH, str(commands[0]), str(answers[1])]
    process = subprocess.Popen(
        [*launch, CHROMIUM, *_OPTIONS, *_WEBGL[webgl], f"--user-data-dir={profile}"],
        pass_fds=(commands[0], answers[1]),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(commands[0])
    os.close(answers[1])
    browser = Browser(process, commands[1], answers[0])
    try:
        yield browser
    finally:
        browser.end()
