#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Rules that forward to themselves in a way that only a connection shows."""
import subprocess
import sys

from kit import Echo, check, equal, run, test, ways
from kit import netns

# Of this route a start sees neither that its addresses are local ones, nor that they are this machine's.
ROUTE = "ip route add local 10.201.9.0/24 dev lo src 10.201.8.1"

CLIENT = """
import socket, sys
for _ in range(int(sys.argv[2])):
    try:
        end = socket.create_connection(("10.201.8.1", int(sys.argv[1])), 20).recv(100)
    except ConnectionResetError:
        end = "RST"
    print(end)
"""


def told(s, port, times):
    """What clients are told, who come one after the other."""
    p = subprocess.run(["nsenter", "-n", "-t", str(s.pid), sys.executable, "-c", CLIENT, str(port), str(times)],
                       capture_output=True, text=True, timeout=50, check=True)
    return p.stdout.split()


@test(each=ways())
def a_loop_that_only_a_connection_shows_costs_a_client_no_more_than_a_reset(t):
    inside = netns.alone("10.201.8.1/24", then=ROUTE)
    for rules in (["7001", "10.201.9.1:7001"], ["7001", "10.201.9.1:7002", "7002", "10.201.9.2:7001"]):
        s = t.sluice(*rules, wrap=inside)
        equal(told(s, 7001, 20), ["RST"] * 20, f"what clients of {rules} are told")
        c = s.stats_at_rest()["connections"]
        check(20 <= c["ended"]["forward_loop"] <= 200, f"ends: {c}")
        check(c["accepted"] <= 400, f"{c['accepted']} connections for 20 clients")
        check(s.err.find("the rule forwards to itself"), s.err.lines)
        s.stop()


BOTH_ENDS = """
import socket
backend = socket.create_server(("127.0.0.1", 9000))
backend.settimeout(20)
held = []
for n in range(4):
    client = socket.create_connection(("127.0.0.1", 7001), 20)
    server = backend.accept()[0]
    client.sendall(b"x")
    held.append((client, server))
    print(client.getsockname()[1], server.getpeername()[1], server.recv(1).decode())
"""


@test(each=ways())
def a_client_whose_port_is_that_of_another_connection_is_no_loop(t):
    """Linux gives a port to connections to different addresses: here, all of the few there are."""
    few = "sysctl -qw net.ipv4.ip_local_port_range='40000 40003'"
    s = t.sluice("7001", "127.0.0.1:9000", wrap=netns.alone(then=few))
    p = subprocess.run(["nsenter", "-n", "-t", str(s.pid), sys.executable, "-c", BOTH_ENDS],
                       capture_output=True, text=True, timeout=50, check=False)
    lines = [line.split() for line in p.stdout.splitlines()]
    equal([line[2:] for line in lines], [["x"]] * 4, f"bytes through it; {p.stderr}")
    equal({line[0] for line in lines}, {line[1] for line in lines}, "ports of clients and of connections to the target")
    equal(s.stats()["connections"]["ended"]["forward_loop"], 0, "loops")


@test(each=ways(workers=(2,)))
def a_client_of_this_machine_is_no_loop(t):
    backend = t.keep(Echo())
    s = t.forward(backend)
    second = t.forward(s)
    for _ in range(50):
        with t.connect(second) as c:
            c.sendall(b"x")
            equal(c.recv(1), b"x", "answer")
    for one in s, second:
        equal(one.stats()["connections"]["ended"]["forward_loop"], 0, "loops")


if __name__ == "__main__":
    run(at_once=2)
