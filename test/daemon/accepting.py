#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What accept(2) may say, and what the sockets of a connection are given at its beginning."""
import socket

from kit import Skip, check, equal, exchange, proc, run, test
from kit.strace import Strace

TCP_USER_TIMEOUT = getattr(socket, "TCP_USER_TIMEOUT", 18)
OF_ONE_CLIENT = "ECONNABORTED", "EPROTO", "EPERM", "ENETDOWN", "EHOSTUNREACH", "EINTR"
WANT = "ENFILE", "ENOBUFS", "ENOMEM"


def serve(t, s, backend, n):
    for k in range(n):
        client, server = t.pair(s, backend)
        exchange(client, server, k, 1000)
        client.close()
        server.close()


@test(each=[{"error": e} for e in OF_ONE_CLIENT])
def what_is_wrong_with_one_client_makes_no_other_wait(t):
    strace = Strace(t, f"accept4:error={t.way.pop('error')}:when=1..3", trace="accept4")
    backend = t.backend()
    s = t.forward(backend, "--workers=1", wrap=strace.wrap)
    serve(t, s, backend, 5)
    c = s.stats_at_rest()["connections"]
    equal((c["accepted"], c["accept_errors"], c["accept_pauses"]), (5, 3, 0), f"accepted, errors and pauses in {c}")


@test(each=[{"error": e} for e in WANT])
def want_of_something_makes_clients_wait_for_a_moment(t):
    strace = Strace(t, f"accept4:error={t.way.pop('error')}:when=1..2", trace="accept4")
    backend = t.backend()
    s = t.forward(backend, "--workers=1", wrap=strace.wrap)
    serve(t, s, backend, 5)
    c = s.stats_at_rest()["connections"]
    equal((c["accepted"], c["accept_errors"], c["accept_pauses"]), (5, 2, 2), f"accepted, errors and pauses in {c}")
    check(s.err.find("warning: accept paused for 100 ms on "), s.err.lines)


def ends_of(t, s, client):
    """Its sockets of this connection: (the client's, the target's)."""
    try:
        sockets = [t.keep(x) for x in proc.sockets(s.pid)]
    except OSError as e:
        raise Skip(f"descriptors of another process cannot be looked at here: {e}") from None
    listening = [x for x in sockets if x.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)]
    ours = [x for x in sockets if x not in listening and x.getpeername() == client.getsockname()]
    others = [x for x in sockets if x not in listening + ours]
    equal((len(ours), len(others)), (1, 1), "sockets of the client, and of the target")
    return ours[0], others[0]


def keepalive(s):
    names = socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT
    if not s.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE):
        return None
    return tuple(s.getsockopt(socket.IPPROTO_TCP, name) for name in names)


def user_timeout(s):
    return s.getsockopt(socket.IPPROTO_TCP, TCP_USER_TIMEOUT)


@test(each=[{"workers": 1}, {"workers": 2}])
def what_finds_dead_peers_is_set_on_the_sockets_of_clients_from_the_start(t):
    backend = t.backend()
    for options, kept, ms in (([], (120, 15, 4), 0), (["--keepalive=3s:2s:5", "--user-timeout=7s"], (3, 2, 5), 7000),
                              (["--keepalive=off", "--user-timeout=off"], None, 0)):
        s = t.forward(backend, *options)
        client, server = t.pair(s, backend)
        exchange(client, server, 1, 1000)
        ours, others = ends_of(t, s, client)
        equal((keepalive(ours), user_timeout(ours)), (kept, ms), f"of the client, with {options}")
        # Its keepalive comes once it has lasted: see test/unit/dead_peer.c.
        equal((keepalive(others), user_timeout(others)), (None, ms), f"of the target, with {options}")


if __name__ == "__main__":
    run(at_once=4)
