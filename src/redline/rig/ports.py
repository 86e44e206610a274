"""Which TCP ports of this machine are taken, and by whom. Knows sockets and processes, not servers of redline."""

import contextlib
import socket
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PortHolder:
    """Who listens on a port; `pid` and `name` are None where the system does not tell this user."""

    port: int
    pid: int | None
    name: str | None

    def describe(self) -> str:
        """Return the holder in words a user can act on."""
        if self.pid is None:
            return "a process of another user"
        return f"process {self.pid} ({self.name or 'unknown program'})"


def find_port_holder(host: str, port: int) -> PortHolder | None:
    """Return who listens where a server would, or None when the port can be bound."""
    if can_bind(host, port):
        return None
    import psutil

    with contextlib.suppress(psutil.Error, OSError):
        for connection in psutil.net_connections(kind="tcp"):
            if connection.status == psutil.CONN_LISTEN and connection.laddr and connection.laddr.port == port:
                return PortHolder(port, connection.pid, _name(connection.pid))
    return PortHolder(port, None, None)


def can_bind(host: str, port: int) -> bool:
    """Whether a server could listen there now; sockets that only linger after a close do not count."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def _name(pid: int | None) -> str | None:
    import psutil

    try:
        return psutil.Process(pid).name() if pid else None
    except psutil.Error:
        return None
