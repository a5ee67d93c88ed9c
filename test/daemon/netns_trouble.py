#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A network that is not there, or not for a while: clients are told, and it goes on."""
import json
import sys
import time

from kit import MIB, MODES, check, equal, proc, run, test
from kit.netns import NEAR, SERVER, TO_SERVER, Row, need

PORT = 7777

# In the server's namespace: answers the first bytes of each connection, and holds it.
ANSWERER = """
import socket
s = socket.create_server(("0.0.0.0", 7777))
held = []
while True:
    c, _ = s.accept()
    c.recv(100)
    c.sendall(b"answer")
    held.append(c)
"""

# In the client's: says for each of so many connections how it was answered, and when.
ASKER = """
import json, socket, sys, time
told = []
for _ in range(int(sys.argv[3])):
    since = time.monotonic()
    try:
        s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 10)
        s.sendall(b"hello")
        end = s.recv(100).decode() or "FIN"
    except OSError as e:
        end = "RST" if isinstance(e, ConnectionResetError) else repr(e)
    told.append((end, time.monotonic() - since))
print(json.dumps(told), flush=True)
if len(sys.argv) > 4:
    time.sleep(60)
"""

# In the server's: pours 32 MiB into the first that comes; in the client's: counts slowly.
POURER = """
import socket
c, _ = socket.create_server(("0.0.0.0", 7777)).accept()
c.sendall(bytes(32 << 20))
c.close()
"""
COUNTER = """
import socket, sys, time
s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 20)
n = 0
while True:
    data = s.recv(1 << 18)
    n += len(data)
    time.sleep(0.002)
    if not data:
        break
print(n)
"""


def begin(t, program, *args):
    need()
    row = Row(t)
    row.serve(PORT, sys.executable, "-c", program)
    return row, row.sluice(PORT, *args)


def ask(row, s, n=1):
    """How each of @n clients was answered, and after how many seconds."""
    status, out = row.run(sys.executable, "-c", ASKER, NEAR, str(s.addr[1]), str(n))
    check(status == 0, out)
    return json.loads(out)


def refused(row, s, what, n=3):
    for end, took in ask(row, s, n):
        check(end == "RST" and took < 2, f"{what}: {end} after {took:.3f} s")


@test(each=MODES)
def a_target_without_a_route_is_refused_at_once_and_served_when_there_is_one(t):
    row, s = begin(t, ANSWERER)
    for kind in "unreachable", "blackhole", "prohibit":
        row.ip(row.middle, "route", "add", kind, SERVER + "/32")
        refused(row, s, kind)
        row.ip(row.middle, "route", "del", kind, SERVER + "/32")
    equal(ask(row, s)[0][0], "answer", "with a route again")
    equal(s.stats()["connections"]["ended"]["connect_failed"], 9, "connect_failed")


@test(each=MODES)
def a_target_that_nothing_comes_back_from_is_given_up_after_connect_timeout(t):
    row, s = begin(t, ANSWERER, "--connect-timeout=500ms")
    row.ip(row.middle, "neigh", "replace", SERVER, "lladdr", "02:00:00:00:00:01", "dev", TO_SERVER, "nud", "permanent")
    end, took = ask(row, s)[0]
    check(end == "RST" and 0.4 < took < 4, f"{end} after {took:.3f} s")
    equal(s.stats_at_rest()["connections"]["ended"]["connect_timeout"], 1, "connect_timeout")


@test(each=MODES)
def without_a_free_port_to_connect_from_clients_are_told_and_it_recovers(t):
    row, s = begin(t, ANSWERER)
    set_ports(row, "50000 50003")  # the kernel leaves out the last of an odd number
    held = [row.start(sys.executable, "-c", ASKER, NEAR, str(s.addr[1]), "1", "hold") for _ in range(4)]
    s.stats_when(lambda totals: totals["connections"]["connected"] == 4)
    refused(row, s, "no port left")
    check(s.err.find("cannot connect: Cannot assign requested address"), s.err.lines)
    check(proc.awake(s.pid, 0.3) < 0.3, "it spins")
    for p in held:
        p.close()
    set_ports(row, "32768 60999")
    equal(ask(row, s)[0][0], "answer", "with ports again")


def set_ports(row, text):
    status, out = row.run_in(row.middle, "sh", "-c", f"echo {text} > /proc/sys/net/ipv4/ip_local_port_range")
    check(status == 0, out)


@test(each=MODES)
def a_link_that_is_down_for_a_while_holds_bytes_up_and_loses_none(t):
    row, s = begin(t, POURER)
    p = row.start(sys.executable, "-c", COUNTER, NEAR, str(s.addr[1]))
    s.stats_when(lambda totals: totals["bytes"]["delivered"] > MIB)
    row.ip(row.middle, "link", "set", TO_SERVER, "down")
    time.sleep(0.4)
    row.ip(row.middle, "link", "set", TO_SERVER, "up")
    out, _ = p.process.communicate(timeout=25)
    equal(out.strip(), b"%d" % (32 * MIB), "bytes")


if __name__ == "__main__":
    run(at_once=2)
