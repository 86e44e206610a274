"""A headless Chromium over its debugging pipe: opens a file, asks questions, takes pictures. Needs no library.

.venv/bin/python -m tests.report.chromium REPORT.html FOLDER     the four pictures of docs/reports.md
"""

import base64
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_OPTIONS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
    "--disable-background-networking", "--remote-debugging-pipe",
)  # fmt: skip


class Tab:
    """One page. What it complained about since it was opened is in `complaints`."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._out, self._in = to_browser, from_browser
        self._numbers = itertools.count(1)
        self._buffer = b""
        self._session: str | None = None
        self._loaded = False
        self.complaints: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **values: Any) -> Any:
        """Ask the browser for one thing and return its answer."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": values}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]
            self._note(answer)

    def open(self, path: Path, width: int, height: int, scheme: str = "light") -> None:
        """Show a file at a size and in a colour scheme."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.complaints.clear()
        self._loaded = False
        self.call("Page.navigate", url=path.resolve().as_uri())
        while not self._loaded:
            self._note(self._read())

    def ask(self, expression: str) -> Any:
        """Return the value of an expression; the page itself may run no script, the debugger may."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def picture(self, path: Path) -> None:
        """Write what is seen as PNG."""
        found = self.call("Page.captureScreenshot", format="png", optimizeForSpeed=False)
        path.write_bytes(base64.b64decode(found["data"]))

    def _note(self, message: dict[str, Any]) -> None:
        match message.get("method"):
            case "Page.loadEventFired":
                self._loaded = True
            case "Log.entryAdded" if message["params"]["entry"]["level"] in ("error", "warning"):
                self.complaints.append(message["params"]["entry"]["text"])
            case "Runtime.exceptionThrown":
                self.complaints.append(message["params"]["exceptionDetails"]["text"])

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            part = os.read(self._in, 1 << 20)
            assert part, "the browser is gone"
            self._buffer += part
        line, self._buffer = self._buffer.split(b"\0", 1)
        message: dict[str, Any] = json.loads(line)
        return message


@contextmanager
def chromium(profile: Path) -> Iterator[Tab]:
    """Start the browser with a profile of its own and yield a tab; the browser is ended afterwards."""
    assert BROWSER is not None
    commands, ours = os.pipe()
    answers, theirs = os.pipe()

    def wire() -> None:  # the browser reads commands from descriptor 3 and writes answers to 4
        high = [os.dup2(commands, 63), os.dup2(theirs, 64)]
        os.dup2(high[0], 3)
        os.dup2(high[1], 4)

    process = subprocess.Popen(
        [BROWSER, *_OPTIONS, f"--user-data-dir={profile}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        close_fds=False,
        start_new_session=True,
        preexec_fn=wire,  # noqa: PLW1509 -- no thread of the tests holds a lock here
    )
    os.close(commands)
    os.close(theirs)
    try:
        yield Tab(ours, answers)
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # its helpers write to the profile as long as they live
        process.wait()
        os.close(ours)
        os.close(answers)


def main(page: Path, folder: Path) -> None:
    """Take a page's pictures, narrow and wide, light and dark: its first screens, since a whole page is tall."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile, chromium(Path(profile)) as tab:
        for width, height in ((360, 2000), (1440, 1500)):
            for scheme in ("light", "dark"):
                tab.open(page, width, height, scheme)
                tab.picture(folder / f"report-{width}-{scheme}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
