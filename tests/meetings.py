"""Addresses on this machine's loopback, for workers that meet."""

from __future__ import annotations

import socket


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def cluster(count: int = 2) -> list[str]:
    return [f"127.0.0.1:{free_port()}" for _ in range(count)]
