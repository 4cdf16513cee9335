"""A way to a Kafka broker that can be cut: its connections end and new ones are refused, or nothing passes."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from types import TracebackType

HOST = "127.0.0.1"


class Line:
    """A proxy in front of a broker, which clients take for the broker itself: answers name the proxy's address.

    Args:
        server: HOST:PORT of the broker, which is on this machine.
    """

    def __init__(self, server: str):
        self._broker = int(server.rpartition(":")[2])
        with socket.create_server((HOST, 0)) as free:
            self._port = free.getsockname()[1]
        self._passes = threading.Event()
        self._passes.set()
        self._open: set[socket.socket] = set()
        self._listening: socket.socket | None = None
        self.server = f"{HOST}:{self._port}"
        self.mend()

    def cut(self) -> None:
        """End all connections, and refuse new ones."""
        listening, self._listening = self._listening, None
        assert listening is not None
        for each in (listening, *self._open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        listening.close()

    def mend(self) -> None:
        """Let connections pass again."""
        self._listening = socket.create_server((HOST, self._port))
        threading.Thread(target=self._accept, args=(self._listening,), daemon=True).start()

    def hold(self) -> None:
        """Let nothing pass, although connections stay open."""
        self._passes.clear()

    def let_go(self) -> None:
        self._passes.set()

    def _accept(self, listening: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = listening.accept()
                far = socket.create_connection((HOST, self._broker))
                self._open |= {near, far}
                for way in ((near, far, False), (far, near, True)):
                    threading.Thread(target=self._carry, args=way, daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket, answers: bool) -> None:
        """Carry requests or answers, each of which begins with its length."""
        old, new = (HOST.encode() + struct.pack(">i", port) for port in (self._broker, self._port))
        with contextlib.suppress(OSError), source, target, source.makefile("rb") as stream:
            while len(head := stream.read(4)) == 4:
                content = stream.read(struct.unpack(">i", head)[0])
                self._passes.wait()
                target.sendall(head + (content.replace(old, new) if answers else content))
        self._open -= {source, target}

    def __enter__(self) -> Line:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.let_go()
        if self._listening is not None:
            self.cut()
