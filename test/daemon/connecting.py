#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""While the target is being connected to, and when it cannot be."""
import signal
import socket
import time

from kit import (KIB, MODES, FullBacklog, Nobody, check, end_of, equal, exchange, half_close, proc, receive_to_end,
                 reset, run, send, test, told, ways)
from kit.strace import Strace

EVERY_WAY = ways()


@test(each=EVERY_WAY)
def a_client_is_told_at_once_when_the_target_refuses(t):
    s = t.forward(t.keep(Nobody()))
    for _ in range(30):
        since = time.monotonic()
        equal(told(s), "RST", "what a client is told")
        check(time.monotonic() - since < 5, f"told after {time.monotonic() - since:.3f} s")
    totals = s.stats_at_rest()
    equal(totals["connections"]["ended"]["connect_failed"], 30, "connect_failed")
    equal(proc.count_becomes(s.pid, 1, "socket:"), 1, "sockets left")


@test(each=[{"error": e} for e in ("ENFILE", "ENOBUFS", "ENOMEM")])
def want_of_something_to_connect_with_is_told_from_a_target_that_refuses(t):
    strace = Strace(t, f"connect:error={t.way.pop('error')}:when=1..3", trace="connect")
    backend = t.backend()
    s = t.forward(backend, "--workers=1", wrap=strace.wrap)
    for _ in range(3):
        equal(told(s), "RST", "what a client is told")
    equal(s.stats_at_rest()["connections"]["ended"]["no_resources"], 3, "no_resources")
    check(s.err.find("cannot connect: no descriptor or no memory available; reset client"), s.err.lines)
    exchange(*t.pair(s, backend), 1, 1000)


@test(each=MODES)
def a_target_that_comes_back_is_used_again(t):
    backend = t.backend()
    s = t.forward(backend)
    exchange(*t.pair(s, backend), 1, 1000)
    port = backend.addr[1]
    backend.close()
    equal(told(s), "RST", "what a client is told meanwhile")
    backend = t.backend(port=port)
    exchange(*t.pair(s, backend), 2, 1000)


@test(each=EVERY_WAY)
def a_target_that_does_not_answer_is_given_up_after_connect_timeout(t):
    target = t.keep(FullBacklog())
    s = t.forward(target, "--connect-timeout=400ms")
    since = time.monotonic()
    client = t.connect(s)
    equal(end_of(client), "RST", "what a client is told")
    took = time.monotonic() - since
    check(0.35 < took < 3, f"told after {took:.3f} s, not after about 0.4")
    equal(s.stats_at_rest()["connections"]["ended"]["connect_timeout"], 1, "connect_timeout")
    equal(proc.count_becomes(s.pid, 1, "socket:"), 1, "sockets left")


@test(each=EVERY_WAY)
def a_client_that_resets_while_it_connects_costs_nothing_any_more(t):
    target = t.keep(FullBacklog())
    s = t.forward(target)
    for _ in range(20):
        reset(t.connect(s))
    s.stats_when(lambda totals: totals["connections"]["accepted"] == 20)
    left = proc.count_becomes(s.pid, 1, "socket:", within=6)
    equal(left, 1, "sockets left soon after 20 clients have reset")
    equal(s.stats()["connections"]["ended"]["client_left"], 20, "client_left")


@test(each=EVERY_WAY)
def what_a_client_says_before_the_target_answers_is_not_lost_nor_is_its_fin(t):
    target = t.keep(FullBacklog())
    s = t.forward(target)
    clients = [t.connect(s) for _ in range(3)]
    for client in clients:
        send(client, 1, 50 * KIB)
        half_close(client)
    time.sleep(0.1)
    equal(s.stats()["connections"]["connected"], 0, "connected")
    target.make_room()
    for _ in range(4):  # and one that was there to fill the queue
        server = t.keep(target.accept())
        if receive_to_end(server, 1) == ("FIN", 50 * KIB):
            clients.pop()
            send(server, 2, 1000)
            server.close()
        if not clients:
            break
    equal(len(clients), 0, "clients whose bytes did not arrive")


@test(each=ways(workers=(1,)))
def a_client_that_says_fin_while_it_connects_gets_the_answer(t):
    target = t.keep(FullBacklog())
    s = t.forward(target)
    client = t.connect(s)
    half_close(client)
    time.sleep(0.05)
    target.make_room()
    server = t.keep(target.accept())
    while end_of(server) != "FIN" or s.stats()["connections"]["connected"] == 0:
        server = t.keep(target.accept())  # one that filled the queue
    send(server, 3, 10 * KIB)
    half_close(server)
    equal(receive_to_end(client, 3), ("FIN", 10 * KIB), "answer")


@test(each=EVERY_WAY)
def clients_that_wait_for_their_target_do_not_hold_up_the_others(t):
    slow, quick = t.keep(FullBacklog()), t.backend()
    s = t.sluice("127.0.0.1:0", "127.0.0.1:%d" % slow.addr[1], "127.0.0.1:0", "127.0.0.1:%d" % quick.addr[1])
    waiting = [t.connect(s.addrs[0]) for _ in range(100)]
    for n in range(20):
        since = time.monotonic()
        client, server = t.pair(s.addrs[1], quick)
        exchange(client, server, n, 1000)
        check(time.monotonic() - since < 5, f"an exchange took {time.monotonic() - since:.3f} s")
    awake = proc.awake(s.pid, 0.5)
    check(awake < 0.3, f"awake for {awake:.0%} of the time while 100 clients wait")
    equal(s.stats()["connections"]["open"], 120, "open")
    for client in waiting:
        client.close()


@test(each=MODES)
def a_target_that_accepts_and_resets_at_once_is_a_reset(t):
    backend = t.backend()
    s = t.forward(backend)
    for _ in range(20):
        client = t.connect(s)
        reset(backend.accept())
        equal(end_of(client), "RST", "what the client is told")


@test(each=MODES)
def a_target_that_speaks_and_closes_at_once_is_heard(t):
    backend = t.backend()
    s = t.forward(backend)
    for n in range(50):
        client = t.connect(s)
        server = backend.accept()
        server.sendall(b"hello")
        server.close()
        equal(client.recv(10), b"hello", "banner")
        equal(end_of(client), "FIN", "end")
        client.close()


@test(each=ways(workers=(1,)))
def a_target_that_speaks_and_resets_before_it_is_looked_at_is_heard(t):
    target = t.keep(FullBacklog())
    s = t.forward(target)
    client = t.connect(s)
    s.stats_when(lambda totals: totals["connections"]["open"] == 1)
    s.signal(signal.SIGSTOP)  # so that it finds all of it at once
    target.make_room()
    server = t.keep(target.accept())
    while _is_over(server):
        server = t.keep(target.accept())  # one that filled the queue
    send(server, 1, 5000)
    time.sleep(0.1)
    reset(server)
    s.signal(signal.SIGCONT)
    equal(receive_to_end(client, 1), ("RST", 5000), "what the client hears")
    c = s.stats_at_rest()["connections"]
    equal((c["connected"], c["ended"]["target_reset"]), (1, 1), f"connected, target_reset in {c}")


def _is_over(server):
    server.settimeout(0.1)
    try:
        return not server.recv(1, socket.MSG_PEEK)
    except socket.timeout:
        server.settimeout(10)
        return False


if __name__ == "__main__":
    run(at_once=4)
