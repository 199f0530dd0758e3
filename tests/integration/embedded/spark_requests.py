"""Requests in the form of Spark's own ports, from somebody without the secret."""

import socket
import struct
from collections.abc import Iterable
from contextlib import suppress
from http.client import HTTPConnection

import psutil

ASKED_S = 10.0
REQUEST, RESPONSE, FAILURE = 3, 4, 5  # types of messages
NUMBER = 7  # of the request
REFUSALS = ("Expected SaslMessage", "Unknown challenge message")
"""What Spark says before it reads a request of somebody that it does not know."""
PAGE = b"GET / HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n"
KILL = ("/app/kill/?id={}&terminate=true", "/workers/kill/?host=127.0.0.1")


def _text(value: str) -> bytes:
    return struct.pack(">I", len(value)) + value.encode()


def blocks() -> bytes:
    """Return a request for a block of the driver's, which has settings, and so keys of stores."""
    names = struct.pack(">I", 1) + _text("broadcast_0_piece0")
    return b"\0" + _text("app") + _text("driver") + names


def call(port: int) -> bytes:
    """Return a call of an endpoint that each RPC port has; its argument is Java's null."""
    host, name = b"127.0.0.1", b"endpoint-verifier"
    address = b"\1" + struct.pack(">H", len(host)) + host + struct.pack(">I", port)
    return b"\0" + address + struct.pack(">H", len(name)) + name + bytes.fromhex("aced000570")


def answer(port: int, sent: bytes) -> bytes:
    """Return the beginning of what comes back; nothing if the connection is closed."""
    with socket.create_connection(("127.0.0.1", port), ASKED_S) as connection:
        connection.settimeout(ASKED_S)
        with suppress(ConnectionResetError):
            connection.sendall(sent)
            return connection.recv(4096)
    return b""


def reply(port: int, body: bytes) -> str:
    """Return what a port replies to a request: the failure's text, or that it did the work."""
    head = struct.pack(">BQI", REQUEST, NUMBER, len(body))
    found = answer(port, struct.pack(">Q", 8 + len(head) + len(body)) + head + body)
    kind, number = struct.unpack(">BQ", found[8:17])
    assert number == NUMBER
    return found[21:].decode(errors="replace") if kind == FAILURE else f"done: {found[17:]!r}"


def ask_page(port: int, method: str, path: str) -> tuple[int, bytes]:
    """Return the status and the text of a page's answer."""
    connection = HTTPConnection("127.0.0.1", port, timeout=ASKED_S)
    try:
        connection.request(method, path)
        found = connection.getresponse()
        return found.status, found.read()
    finally:
        connection.close()


def listening(processes: Iterable[psutil.Process]) -> dict[int, str]:
    """Return the ports at which these listen: port -> address."""
    every = (each for process in processes for each in process.net_connections("tcp"))
    return {each.laddr.port: each.laddr.ip for each in every if each.status == psutil.CONN_LISTEN}


def kinds_of(ports: Iterable[int]) -> dict[int, str]:
    """Return what each port is to somebody without a secret: `refuses`, `HTTP`, or what it does."""
    found = {}
    for port in ports:
        if answer(port, PAGE).startswith(b"HTTP/"):
            found[port] = "HTTP"
            continue
        replies = [reply(port, body) for body in (blocks(), call(port))]
        refused = [any(why in text for why in REFUSALS) for text in replies]
        found[port] = "refuses" if all(refused) else replies[0][:200]
    return found
