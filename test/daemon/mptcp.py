#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Multipath TCP: by --mptcp, or without its knowledge, by mptcpize(8)."""
import os
import socket

from kit import (MIB, Job, Skip, check, connect, end_of, equal, exchange, half_close, proc, receive, receive_to_end, reset, run, send,
                 test)
from kit.seccomp import refuse

MPTCP = 262
SHIM = os.environ.get("MPTCPIZE")


def need_mptcp():
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP).close()
    except OSError as e:
        raise Skip(f"no MPTCP here: {e}") from None


def multipath(cls=socket.socket):
    return cls(socket.AF_INET, socket.SOCK_STREAM, MPTCP)


class Server:
    """As kit's Backend, over MPTCP."""

    def __init__(self):
        self.socket = multipath()
        self.socket.bind(("127.0.0.1", 0))
        self.socket.listen(100)
        self.socket.settimeout(20)
        self.addr = self.socket.getsockname()

    def accept(self):
        s, _ = self.socket.accept()
        s.settimeout(20)
        return s

    def close(self):
        self.socket.close()


def start(t, backend, *args, how="option", **kwargs):
    need_mptcp()
    if how == "option":
        return t.forward(backend, "--mptcp", *args, **kwargs)
    if not SHIM:
        raise Skip("MPTCPIZE does not name the library that stands in for mptcpize")
    asan = ["ASAN_OPTIONS=verify_asan_link_order=0"] if proc.sanitized(t.binary) else []
    return t.forward(backend, *args, wrap=["env", "LD_PRELOAD=" + SHIM, *asan], **kwargs)


def client_of(t, s, over):
    if over == "tcp":
        return t.connect(s)
    client = t.keep(multipath())
    client.settimeout(20)
    client.connect(s.addr)
    return client


def protocols(s):
    """Of its sockets that do not listen."""
    found = []
    for x in proc.sockets(s.pid):
        if not x.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            found.append(x.getsockopt(socket.SOL_SOCKET, socket.SO_PROTOCOL if hasattr(socket, "SO_PROTOCOL") else 38))
        x.close()
    return sorted(found)


WAYS = [{"mode": m, "workers": 2, "over": o, "how": h} for m in ("splice", "copy", "auto")
        for o, h in (("mptcp", "option"), ("tcp", "option"), ("mptcp", "mptcpize"))]


def pair(t):
    """(sluice, client, server), both of this way's kind."""
    over, how = t.way.pop("over"), t.way.pop("how")
    need_mptcp()
    backend = t.keep(Server()) if over == "mptcp" else t.backend()
    s = start(t, backend, how=how)
    client = client_of(t, s, over)
    server = t.keep(backend.accept())
    exchange(client, server, 1, 1000)
    equal(protocols(s), [6, MPTCP] if over == "tcp" else [MPTCP, MPTCP], "protocols of its sockets")
    return s, client, server


@test(each=WAYS)
def bytes_both_ways_and_a_fin_each(t):
    s, client, server = pair(t)
    jobs = [Job(send, client, 2, 16 * MIB), Job(send, server, 3, 16 * MIB), Job(receive, server, 2, 16 * MIB),
            Job(receive, client, 3, 16 * MIB)]
    for job in jobs:
        job.result()
    half_close(client)
    equal(end_of(server), "FIN", "what the server is told")
    exchange_one_way(server, client)
    half_close(server)
    equal(end_of(client), "FIN", "what the client is told")
    totals = s.stats_at_rest()
    equal(totals["connections"]["ended"]["finished"], 1, "finished")
    equal(totals["bytes"]["read"], totals["bytes"]["delivered"], "read and delivered")
    equal(totals["connections"]["mptcp_refused"], 0, "refused")


def exchange_one_way(a, b):
    send(a, 5, 5000)
    receive(b, 5, 5000)


@test(each=WAYS)
def a_reset_is_a_reset_behind_the_bytes_before_it(t):
    who = ("client_reset", "target_reset")
    s, client, server = pair(t)
    for n, (a, b) in enumerate(((client, server),)):
        send(a, 2, 20000)
        receive(b, 2, 20000)
        send(b, 3, 3000)
        receive(a, 3, 3000)
        reset(a)
        equal(receive_to_end(b, 2)[0], "RST", "what the other is told")
        equal(s.stats_at_rest()["connections"]["ended"][who[n]], 1, who[n])


@test(each=WAYS)
def a_reset_of_the_server_is_one_too(t):
    s, client, server = pair(t)
    reset(server)
    equal(receive_to_end(client, 2)[0], "RST", "what the client is told")
    equal(s.stats_at_rest()["connections"]["ended"]["target_reset"], 1, "target_reset")


@test(each=[{"mode": m, "how": h} for m in ("splice", "copy", "auto") for h in ("option", "mptcpize")])
def an_urgent_byte_of_a_tcp_client_has_its_place(t):
    how = t.way.pop("how")
    backend = t.backend()
    s = start(t, backend, how=how)
    client, server = t.pair(s, backend)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
    send(client, 1, 1000)
    receive(server, 1, 1000)
    client.send(b"!", socket.MSG_OOB)
    client.sendall(b"more")
    half_close(client)
    got = b""
    while len(got) < 5:
        got += server.recv(10)
    equal(got, b"!more", "urgent byte and what follows")


@test()
def under_mptcpize_it_says_what_is_unavailable(t):
    s = start(t, "127.0.0.1:9", how="mptcpize")
    equal([li for li in s.err.lines if "warning:" in li],
          ["sluice: warning: SO_OOBINLINE unavailable on listening sockets; urgent data may be forwarded as ordinary data"], "warnings")
    s = start(t, "127.0.0.1:9", "--user-timeout=5s", how="mptcpize", ready=False)
    status, _, err = s.result()
    check(status == 1 and len(err) == 1 and "--user-timeout" in err[0], f"exit {status}, {err}")


@test(each=[{"error": e} for e in ("EPERM", "EINVAL", "ENOPROTOOPT", "EPROTONOSUPPORT")])
def where_the_kernel_refuses_it_tcp_is_used_and_that_is_counted_and_told_once(t):
    backend = t.backend()
    s = t.forward(backend, "--mptcp", wrap=refuse("socket", t.way.pop("error"), a2=MPTCP))
    for n in range(3):
        client, server = t.pair(s, backend)
        exchange(client, server, n, 1000)
        equal(protocols(s), [6, 6], "protocols of its sockets")
        client.close()
        server.close()
        s.stats_at_rest()
    equal(s.stats()["connections"]["mptcp_refused"], 4, "one listening socket, three connections")
    equal(len([li for li in s.err.lines if "MPTCP unavailable: " in li]), 1, f"lines in {s.err.lines}")


if __name__ == "__main__":
    run(at_once=2)
