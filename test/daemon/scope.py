#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A target with a link-local address, whose interface is deleted and made anew."""
import json
import sys

from kit import check, equal, run, test, ways
from kit.netns import Row, need

PORT = 7778
NEAR_LL, FAR_LL = "fe80::51:1", "fe80::51:2"

# In the middle namespace: how each of so many connections was answered.
ASKER = """
import json, socket, sys
told = []
for _ in range(int(sys.argv[2])):
    try:
        s = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 10)
        told.append(s.recv(100).decode() or "FIN")
    except OSError as e:
        told.append(type(e).__name__)
print(json.dumps(told))
"""
GREETER = """
import socket
s = socket.create_server(("::", 7778), family=socket.AF_INET6)
while True:
    c, _ = s.accept()
    c.sendall(b"hello")
    c.close()
"""


def plug_in(row):
    """A link between the namespaces, called "ll" in the middle."""
    row.ip(row.middle, "link", "add", "ll", "type", "veth", "peer", "name", "ll", "netns", row.server)
    for ns, addr in ((row.middle, NEAR_LL), (row.server, FAR_LL)):
        row.ip(ns, "addr", "add", addr + "/64", "dev", "ll", "nodad")
        row.ip(ns, "link", "set", "ll", "up")


def index_of(row):
    status, out = row.run_in(row.middle, "ip", "-o", "link", "show", "ll")
    check(status == 0, out)
    return int(out.split(b":")[0])


def ask(row, s, n=1):
    status, out = row.run_in(row.middle, sys.executable, "-c", ASKER, str(s.addr[1]), str(n))
    check(status == 0, out)
    return json.loads(out)


@test(each=ways(modes=("splice",)))
def a_link_local_target_is_reached_again_when_its_interface_was_made_anew(t):
    need()
    row = Row(t)
    plug_in(row)
    row.serve(PORT, sys.executable, "-c", GREETER)
    s = t.sluice("--log-level=info", "127.0.0.1:0", f"[{FAR_LL}%ll]:{PORT}", wrap=row.inside(row.middle))
    equal(ask(row, s, 2), ["hello"] * 2, "at first")
    before = index_of(row)
    row.ip(row.middle, "link", "del", "ll")
    equal(ask(row, s), ["ConnectionResetError"], "without the interface")
    check(s.err.find(rf"warning: \[{FAR_LL}%ll\]:{PORT}: cannot connect: No such device; reset client"), s.err.lines)
    plug_in(row)
    check(index_of(row) != before, f"index {before} again")
    equal(ask(row, s, 2), ["hello"] * 2, "with the interface made anew")
    equal(s.stats_at_rest()["connections"]["ended"]["connect_failed"], 1, "connect_failed")
    check(s.err.find(rf"-> \[{FAR_LL}%ll\]:{PORT}: finished"), s.err.lines)


@test()
def a_link_local_target_whose_interface_comes_later_is_used_then(t):
    need()
    row = Row(t)
    s = t.sluice("127.0.0.1:0", f"[{FAR_LL}%ll]:{PORT}", wrap=row.inside(row.middle))
    check(s.err.find(rf"warning: target \[{FAR_LL}%ll\]:{PORT}: "), s.err.lines)
    equal(ask(row, s), ["ConnectionResetError"], "without the interface")
    plug_in(row)
    row.serve(PORT, sys.executable, "-c", GREETER)
    check(s.err.find(rf"target \[{FAR_LL}%ll\]:{PORT}: resolved"), s.err.lines)
    equal(ask(row, s), ["hello"], "with it")


if __name__ == "__main__":
    run()
