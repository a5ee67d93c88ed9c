#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""When there is hardly a port left to connect from. Runs in a network namespace of its own."""
import os
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "daemon"))

from kit import EACH_MODE, MODES, check, end_of, equal, exchange, proc, reset, run, test  # noqa: E402

import namespace  # noqa: E402

FIRST, PORTS = 40000, 20
LISTEN = "127.0.0.1:30000"  # not one of those
_next = iter(range(20000, 39000))


def client_of(t, s):
    """A client with a port from elsewhere."""
    c = t.keep(socket.socket())
    c.settimeout(10)
    c.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    c.bind(("127.0.0.1", next(_next)))
    c.connect(s.addr)
    return c


def told(t, s, words):
    """How a client is answered who should not be: b"RST"."""
    try:
        client = client_of(t, s)
        client.sendall(words)
        return client.recv(100) or b"FIN"
    except (ConnectionResetError, BrokenPipeError):
        return b"RST"


@test(each=MODES)
def the_next_address_is_tried_when_no_port_is_left_for_the_first(t):
    namespace.need(t, "127.0.0.2 both\n127.0.0.3 both\n")
    namespace.ports_to_connect_from(FIRST, FIRST + PORTS - 1)
    one = t.backend(host="127.0.0.2", port=50000)
    two = t.backend(host="127.0.0.3", port=50000)
    s = t.sluice(LISTEN, "both:50000", "--workers=1")
    pairs = []
    for n in range(2 * PORTS):
        client = client_of(t, s)
        server = t.keep((one if n < PORTS else two).accept())
        exchange(client, server, n, 1000)
        pairs.append((client, server))
    for _ in range(30):
        equal(told(t, s, b"hello"), b"RST", "what a client is told when neither has a port left")
    totals = s.stats()["connections"]
    equal((totals["connected"], totals["ended"]["connect_failed"]), (2 * PORTS, 30), "connected and failed")
    check(s.err.find("cannot connect: Cannot assign requested address"), "nothing is said about it")
    lines = sum("cannot connect" in line for line in s.err.lines)
    check(lines <= 5, f"{lines} lines about 30 failures")
    for client, server in pairs[3], pairs[PORTS + 3]:
        reset(client)
        equal(end_of(server), "RST", "how a connection goes that makes room")
        exchange(client_of(t, s), t.keep((one if server is pairs[3][1] else two).accept()), 99, 1000)


@test(each=MODES)
def nobody_hears_his_own_words_from_a_target_that_is_not_there(t):
    namespace.need(t)
    port = 41000 + 1000 * EACH_MODE.index(t.way["mode"])  # the first that meets itself is in TIME_WAIT for a minute
    namespace.ports_to_connect_from(port, port + 1)
    s = t.sluice(LISTEN, f"127.0.0.1:{port}", "--workers=1")
    tries = 100
    for _ in range(tries):
        equal(told(t, s, b"anybody there?"), b"RST", "answer")
    ended = s.stats_at_rest()["connections"]["ended"]
    equal(ended["connect_self"] + ended["connect_failed"] + ended["client_reset"], tries, f"ends {ended}")
    check(ended["connect_self"] > 0, f"none has met itself, so nothing was tested: {ended}")
    equal(proc.count_becomes(s.pid, 1, "socket:"), 1, "sockets left")


if __name__ == "__main__":
    namespace.enter()
    run()
