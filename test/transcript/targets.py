#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Targets of several addresses, each of which fails in its own way. Runs in a network namespace of its own."""
import os
import re
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "daemon"))

from kit import KIB, check, end_of, equal, half_close, proc, receive_to_end, reset, run, send, test, told, ways  # noqa: E402
from kit.strace import Strace  # noqa: E402

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


@test(each=ways(workers=(1,)))
def families_alternate_from_the_resolvers_first_on(t):
    six, four = ["fd00::1", "fd00::2", "fd00::3"], ["127.0.0.2", "127.0.0.3"]
    namespace.need(t, "".join(f"{a} many\n" for a in six + four))
    for a in six:
        subprocess.run(["ip", "addr", "replace", a + "/128", "dev", "lo", "nodad"], check=True, timeout=10)
    strace = Strace(t, trace="connect")
    s = t.sluice("127.0.0.1:0", f"many:{PORT}", wrap=strace.wrap)
    resolved = [li.split()[3].rsplit(":", 1)[0].strip("[]") for li in s.err.lines if " -> " in li]
    equal(told(s), "RST", "what a client is told when each refuses")
    calls = [re.search(rf'connect\(.*htons\({PORT}\).*"([^"]+)".*(?:REFUSED|INPROGRESS)', li) for li in strace.lines()]
    want, queues = [], [[a for a in resolved if (":" in a) == (":" in resolved[k])] for k in (0, -1)]
    check(queues[0] != queues[1], f"one family alone in {resolved}")
    while any(queues):
        want += [q.pop(0) for q in queues if q]
    equal([m[1] for m in calls if m], want, f"connects, resolved as {resolved}")


if __name__ == "__main__":
    namespace.enter()
    run()
