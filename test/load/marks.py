#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""marks.py SLUICE [OPTIONS OF SLUICE] - how often an urgent byte arrives as an ordinary one.

By hand: 400 connections, on each of which an urgent byte follows three others by up to 50 us, when the worker has just
been woken by those; then the same beside two transfers. Bytes must be right and in order, whatever becomes of the mark.
"""
import pathlib
import random
import select
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "daemon"))
from kit.sluice import Sluice  # noqa: E402

ROUNDS = 400
BLOCK = b"x" * 65536


def play(client, server, words):
    """Return: whether the urgent byte was told of as urgent."""
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for _ in range(words):
        client.sendall(b"hello")
        server.recv(5)
    client.send(b"abc")
    until = time.perf_counter() + random.random() * 50e-6
    while time.perf_counter() < until:
        pass
    client.send(b"U", socket.MSG_OOB)
    client.send(b"def")
    urgent = bool(select.select([], [], [server], 0.3)[2]) and server.recv(1, socket.MSG_OOB) == b"U"
    want, got = b"abcdef" if urgent else b"abcUdef", b""
    while len(got) < len(want):
        got += server.recv(100)
    if got != want:
        sys.exit(f"{got} has come, not {want}")
    return urgent


def transfer(client, server):
    while True:
        try:
            client.sendall(BLOCK)
            left = len(BLOCK)
            while left:
                left -= len(server.recv(left))
        except OSError:
            return


def count(s, listener, transfers):
    def pair():
        client = socket.create_connection(s.addr)
        return client, listener.accept()[0]

    busy = [pair() for _ in range(transfers)]
    for both in busy:
        threading.Thread(target=transfer, args=both, daemon=True).start()
    lost = 0
    for n in range(ROUNDS):
        client, server = pair()
        lost += not play(client, server, n % 3)
        client.close()
        server.close()
    print(f"{' '.join(sys.argv[2:])}: {lost} of {ROUNDS} were urgent no more, beside {transfers} transfers")
    for both in busy:
        both[0].shutdown(socket.SHUT_RDWR)


listener = socket.create_server(("127.0.0.1", 0), backlog=100)
s = Sluice(sys.argv[1], sys.argv[2:] + ["--workers=1", "127.0.0.1:0", f"127.0.0.1:{listener.getsockname()[1]}"],
           stdout=subprocess.DEVNULL)
s.begin()
try:
    count(s, listener, 0)
    count(s, listener, 2)
finally:
    s.close()
