#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A network that is not there, or not for a while: clients are told, and it goes on."""
import json
import time

from kit import check, equal, proc, run, test, ways
from kit.netns import FAR, NEAR, SERVER, Row, need

PORT = 7777
# Run in the client's namespace: connects, and tells how it ends and after how long.
CLIENT = """
import json, socket, sys, time
since = time.monotonic()
try:
    s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 10)
    s.sendall(b"hello")
    s.settimeout(10)
    got = s.recv(100)
    end = "FIN" if not got else got.decode()
except ConnectionResetError:
    end = "RST"
except OSError as e:
    end = type(e).__name__
print(json.dumps([end, time.monotonic() - since]))
"""
# Run in the server's: answers the first bytes of each connection, and holds it.
SERVER_PROGRAM = """
import socket, sys
s = socket.create_server(("0.0.0.0", int(sys.argv[1])))
held = []
while True:
    c, _ = s.accept()
    c.recv(100)
    c.sendall(b"answer")
    held.append(c)
"""


def ask(row, s):
    """Return: how a client was answered, and after how many seconds."""
    status, out = row.run("python3", "-c", CLIENT, NEAR, str(s.addr[1]), within=20)
    check(status == 0, out)
    return json.loads(out)


def in_middle(row, *words):
    from kit.netns import _ip
    ok, why = _ip("-n", row.middle, *words)
    check(ok, f"ip {' '.join(words)}: {why}")


@test(each=ways(workers=(1,)), limit=30)
def a_target_without_a_route_is_refused_at_once_and_served_when_there_is_one(t):
    need()
    row = Row(t)
    row.serve(PORT, "python3", "-c", SERVER_PROGRAM, str(PORT))
    s = row.sluice(PORT)
    for kind in "unreachable", "blackhole", "prohibit":
        in_middle(row, "route", "add", kind, SERVER + "/32")
        for _ in range(5):
            end, took = ask(row, s)
            check(end == "RST" and took < 2, f"{kind}: {end} after {took:.3f} s")
        in_middle(row, "route", "del", kind, SERVER + "/32")
        equal(ask(row, s)[0], "answer", f"after {kind}")
    equal(s.stats()["connections"]["ended"]["connect_failed"], 15, "connect_failed")


@test(each=ways(workers=(1,)), limit=30)
def a_target_that_nothing_comes_back_from_is_given_up_after_connect_timeout(t):
    need()
    row = Row(t)
    s = row.sluice(PORT, "--connect-timeout=500ms")
    in_middle(row, "neigh", "replace", SERVER, "lladdr", "02:00:00:00:00:01", "dev", "right", "nud", "permanent")
    end, took = ask(row, s)
    check(end == "RST" and 0.4 < took < 4, f"{end} after {took:.3f} s")
    equal(s.stats_at_rest()["connections"]["ended"]["connect_timeout"], 1, "connect_timeout")


@test(each=ways(workers=(1,)), limit=30)
def without_a_free_port_to_connect_from_clients_are_told_and_it_recovers(t):
    need()
    row = Row(t)
    row.serve(PORT, "python3", "-c", SERVER_PROGRAM, str(PORT))
    s = row.sluice(PORT)
    with_range(row, "50000 50002")
    held = [row.start("python3", "-c", CLIENT + "\ntime.sleep(60)", NEAR, str(s.addr[1])) for _ in range(3)]
    s.stats_when(lambda totals: totals["connections"]["connected"] == 3)
    for _ in range(3):
        end, took = ask(row, s)
        check(end == "RST" and took < 2, f"no port left: {end} after {took:.3f} s")
    check(s.err.find("cannot connect: Cannot assign requested address"), s.err.lines)
    cpu = proc.cpu(s.pid)
    time.sleep(0.3)
    check(proc.cpu(s.pid) - cpu <= 0.03, "it spins")
    for p in held:
        p.close()
    with_range(row, "32768 60999")
    equal(ask(row, s)[0], "answer", "with ports again")


def with_range(row, text):
    status, out = row.run_in(row.middle, "sh", "-c", f"echo {text} > /proc/sys/net/ipv4/ip_local_port_range")
    check(status == 0, out)


@test(each=ways(workers=(1,)), limit=30)
def a_link_that_is_down_for_a_while_holds_bytes_up_and_loses_none(t):
    need("sha256sum")
    row = Row(t)
    # the server sends 32 MiB of zeros to whoever comes
    program = "import socket,sys\ns=socket.create_server(('0.0.0.0',%d))\nc,_=s.accept()\nc.sendall(bytes(32<<20))\nc.close()" % PORT
    row.serve(PORT, "python3", "-c", program)
    s = row.sluice(PORT)
    in_middle(row, "link", "set", "left", "down")
    in_middle(row, "link", "set", "left", "up")
    reader = ("import socket,time\ns=socket.create_connection(('%s',%d),20)\nn=0\ns.settimeout(20)\n"
              "while True:\n d=s.recv(1<<18)\n n+=len(d)\n time.sleep(0.002)\n if not d: break\nprint(n)" % (NEAR, s.addr[1]))
    p = row.start("python3", "-c", reader)
    s.stats_when(lambda totals: totals["bytes"]["delivered"] > 1 << 20)
    in_middle(row, "link", "set", "right", "down")  # towards the server
    time.sleep(0.4)
    in_middle(row, "link", "set", "right", "up")
    out, _ = p.process.communicate(timeout=25)
    equal(out.split(), [b"%d" % (32 << 20)], "bytes")
    check(FAR, "")


if __name__ == "__main__":
    run(at_once=2)
