#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Targets of several addresses, each of which fails in its own way. Runs in a network namespace of its own."""
import os
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "daemon"))

from kit import KIB, check, end_of, equal, half_close, proc, receive_to_end, reset, run, send, test, ways  # noqa: E402

import namespace  # noqa: E402

TIMEOUT_S = 0.4
OPTIONS = ["--connect-timeout=400ms"]
PORT = 50000
EVERY_WAY = ways(workers=(2,))


def silent(t, host):
    """Somebody at @host who does not answer: his queue is full."""
    backend = t.backend(host=host, port=PORT, backlog=0)
    for _ in range(4):
        filler = t.keep(socket.socket())
        filler.setblocking(False)
        filler.connect_ex((host, PORT))
    time.sleep(0.05)
    return backend


@test(each=EVERY_WAY)
def each_address_is_tried_whatever_the_one_before_died_of(t):
    namespace.need(t, "127.0.0.2 many\n127.0.0.3 many\n10.9.9.9 many\n127.0.0.4 many\n")
    silent(t, "127.0.0.3")
    s = t.sluice("127.0.0.1:0", f"many:{PORT}", *OPTIONS)
    since = time.monotonic()
    equal(end_of(t.connect(s)), "RST", "what a client is told when all have failed")
    took = time.monotonic() - since
    check(0.9 * TIMEOUT_S < took < TIMEOUT_S + 2, f"told after {took:.3f} s; one of four is silent for {TIMEOUT_S}")
    backend = t.backend(host="127.0.0.4", port=PORT)
    client = t.connect(s)
    send(client, 1, 50 * KIB)
    half_close(client)
    server = t.keep(backend.accept())
    equal(receive_to_end(server, 1), ("FIN", 50 * KIB), "what was said while the others failed")
    send(server, 2, 1000)
    server.close()
    equal(receive_to_end(client, 2), ("FIN", 1000), "answer")
    totals = s.stats_at_rest()["connections"]
    equal((totals["accepted"], totals["connected"], totals["ended"]["finished"]), (2, 1, 1), f"{totals}")
    equal(proc.count_becomes(s.pid, 1, "socket:"), 1, "sockets left")


@test(each=EVERY_WAY)
def a_client_that_resets_between_two_addresses_is_let_go_at_once(t):
    namespace.need(t, "127.0.0.2 many\n127.0.0.3 many\n127.0.0.4 many\n")
    for host in "127.0.0.2", "127.0.0.3", "127.0.0.4":
        silent(t, host)
    s = t.sluice("127.0.0.1:0", f"many:{PORT}", "--connect-timeout=1500ms")
    clients = [t.connect(s) for _ in range(20)]
    s.stats_when(lambda totals: totals["connections"]["accepted"] == 20)
    for n, client in enumerate(clients):
        if n % 2:
            send(client, 1, KIB)
        reset(client)
    since = time.monotonic()
    equal(proc.count_becomes(s.pid, 1, "socket:"), 1, "sockets left of clients that have reset")
    took = time.monotonic() - since
    check(took < 1, f"let go after {took:.3f} s, with a timeout of 1.5")
    equal(s.stats()["connections"]["ended"]["client_left"], 20, "client_left")


if __name__ == "__main__":
    namespace.enter()
    run()
