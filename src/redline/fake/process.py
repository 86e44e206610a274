"""The process: boots, listens, serves, and ends as the scenario says. `python -m redline.fake` is its command line.

It binds its port when the engine would: vLLM before it loads (vllm/entrypoints/launchers/launcher.py:370) and answers
only when it is ready; llama.cpp before it loads too, and answers 503 meanwhile.
"""

import asyncio
import contextlib
import errno
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NoReturn

from redline.fake.app import App
from redline.fake.boot import BootLog, boot_script
from redline.fake.core import Core
from redline.fake.dialect import Dialect
from redline.fake.http import HttpServer
from redline.fake.llamacpp import LlamaCppDialect
from redline.fake.scenario import Dialect as DialectName
from redline.fake.scenario import Scenario
from redline.fake.truth import TruthLog
from redline.fake.vllm import VllmDialect

_DIALECTS: Final[dict[str, type[VllmDialect] | type[LlamaCppDialect]]] = {
    "vllm": VllmDialect,
    "llamacpp": LlamaCppDialect,
}
# A program that has nothing to do with us: answers anything with 404 for a while, in a session of its own.
_STRANGER: Final = """
import http.server, sys, threading
class Stranger(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_error(404)
    do_POST = do_GET
    def log_message(self, *_):
        pass
server = http.server.HTTPServer((sys.argv[1], int(sys.argv[2])), Stranger)
threading.Timer(float(sys.argv[3]), server.shutdown).start()
print("listening", flush=True)
server.serve_forever()
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a scenario is played. Port 0: any free one. `ready_fd` gets the port and a newline once it serves."""

    scenario: Scenario
    dialect: DialectName
    host: str = "127.0.0.1"
    port: int = 0
    seed: int = 0
    truth: Path | None = None
    ready_fd: int | None = None


def run(options: Options) -> int:
    """Play the scenario until its end or a signal; return the exit status."""
    if options.scenario.boot.restarts:
        return _restart_forever(options)
    with contextlib.suppress(KeyboardInterrupt):
        return asyncio.run(_Engine(options).live())
    return 130


def _restart_forever(options: Options) -> int:
    """Start the engine again whenever it ends, as a container's restart policy does, until a signal."""
    plain = options.scenario.boot
    child = 0

    def end(number: int, _frame: object) -> NoReturn:
        if child:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        os._exit(128 + number)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    # One port for all its lives, as a container's published port is.
    once = replace(_without_restart(options), port=options.port or _free_port(options.host))
    while True:
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os._exit(asyncio.run(_Engine(once).live()))
        os.waitpid(child, 0)
        child = 0
        time.sleep(max(plain.line_s, 0.05))


def _without_restart(options: Options) -> Options:
    scenario = replace(options.scenario, boot=replace(options.scenario.boot, restarts=False))
    return replace(options, scenario=scenario)


class _Engine:
    """One life of the engine."""

    def __init__(self, options: Options) -> None:
        self._options, self._scenario = options, options.scenario
        self._core = core = Core(options.scenario, options.seed)
        version = boot_script(options.dialect).version
        self._dialect: Dialect = _DIALECTS[options.dialect](options.scenario, core, version)
        self._app = App(options.scenario, self._dialect, core, TruthLog(options.truth), self._die)
        self._server = HttpServer(self._app.handle, self._dialect.headers)
        self._stop = asyncio.Event()
        self._app.loading = True
        self._port = options.port
        self._log: BootLog | None = None

    async def live(self) -> int:
        """Boot, serve, end; return the exit status."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal)
        try:
            sock = self._bind()
            self._log = self._open_log(sock)
            if self._dialect.serves_while_loading:
                await self._server.start(sock)
            stopping = asyncio.ensure_future(self._stop.wait())
            booting = asyncio.ensure_future(self._boot())
            await asyncio.wait({booting, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not booting.done():
                return 128 + signal.SIGTERM
            if not booting.result():
                return self._fault_status()
            if not self._dialect.serves_while_loading:
                await self._server.start(sock)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            self._open_log(None).say("port_taken")
            return 1
        self._app.loading = False
        stats = asyncio.ensure_future(self._tell_stats(self._log))
        self._tell_ready(sock.getsockname()[1])
        await stopping
        stats.cancel()
        await self._server.stop()
        self._log.say("stopped")
        return 0

    async def _tell_stats(self, log: BootLog) -> None:
        """Sum up now and then what was done, as vLLM does: vllm/v1/metrics/loggers.py, log()."""
        if self._options.dialect != "vllm":
            return
        before = replace(self._core.totals)
        while True:
            await asyncio.sleep(self._scenario.boot.stats_s)
            after = replace(self._core.totals)
            made, drafts = after.generated_tokens - before.generated_tokens, after.drafts - before.drafts
            drafted, accepted = (
                after.drafted_tokens - before.drafted_tokens,
                after.accepted_tokens - before.accepted_tokens,
            )
            if made > 0:
                rate = made / self._scenario.boot.stats_s
                log.say("stats", rate=f"{rate:.1f}", running=after.running, waiting=after.waiting)
            if drafts > 0:
                mean, share = 1 + accepted / drafts, 100 * accepted / drafted
                log.say("spec_stats", mean=f"{mean:.2f}", accepted=accepted, drafted=drafted, share=f"{share:.1f}")
            before = after

    async def _boot(self) -> bool:
        """Print the boot; return False when the scenario ends it. A hang never returns."""
        assert self._log is not None
        fault = self._scenario.boot.fault
        async for phase in self._log.phases():
            if fault is None or fault.phase != phase:
                continue
            if fault.message:
                self._log.say(fault.message)
            if fault.kind == "exit":
                return False
            await asyncio.Event().wait()
        return True

    def _fault_status(self) -> int:
        fault = self._scenario.boot.fault
        return fault.exit_code if fault else 1

    def _bind(self) -> socket.socket:
        """Return a socket bound to the port, as the engine does first of all.

        Raises:
            OSError: the port is taken.
        """
        options = self._options
        port = options.port
        if self._scenario.boot.stranger_s is not None:
            port = port or _free_port(options.host)
            _start_stranger(options.host, port, self._scenario.boot.stranger_s)
        self._port = port
        family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Connections inherit it. Without it the first token on a connection that is used again waits 40 ms for the
        # client's acknowledgement, which asyncio only prevents for sockets made with IPPROTO_TCP by name.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.bind((options.host, port))
        return sock

    def _open_log(self, sock: socket.socket | None) -> BootLog:
        model, options = self._scenario.model, self._options
        pool = model.pool_tokens or model.slots * model.context
        values = {
            "version": self._dialect.version,
            "model": model.listed_id or model.id,
            "host": options.host,
            "port": sock.getsockname()[1] if sock is not None else self._port,
            "context": model.context,
            "context_grouped": f"{model.context:,}",
            "block_tokens": model.block_tokens,
            "pool_tokens": f"{pool:,}",
            "slots": model.slots,
            "concurrency": f"{pool / model.context:.2f}",
        }
        return BootLog(self._scenario, options.dialect, values, os.getpid())

    def _tell_ready(self, port: int) -> None:
        fd = self._options.ready_fd
        if fd is not None:
            os.write(fd, f"{port}\n".encode())
            os.close(fd)

    def _on_signal(self) -> None:
        if self._scenario.life.ignores_sigterm:
            print("SIGTERM: busy, not now", flush=True)
        else:
            self._stop.set()

    def _die(self, message: str) -> NoReturn:
        """End at once, with the engine's last words, as after a fault on the device."""
        if message and self._log is not None:
            self._log.say(message)
        os._exit(1)


def _free_port(host: str) -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port


def _start_stranger(host: str, port: int, seconds: float) -> None:
    """Start a program that takes the port, and return when it has it."""
    command = [sys.executable, "-c", _STRANGER, host, str(port), str(seconds)]
    stranger = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    )
    assert stranger.stdout is not None
    stranger.stdout.readline()
    stranger.stdout.close()
