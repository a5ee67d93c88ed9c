#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""More clients than descriptors: they wait, and nobody spins or is turned away."""
import resource
import socket

from kit import (Job, check, end_of, equal, exchange, half_close, proc, receive, reset, run, send, send_until_full,
                 stamp, test, ways)

LIMIT = 40  # descriptors
CLIENTS = 40


def short_one(t, backend, *args, limit=LIMIT):
    return t.forward(backend, *args, limits={resource.RLIMIT_NOFILE: limit})


def accept_all(t, backend, within=0.3):
    """Accepts until nobody comes any more; tells each server by what its client said."""
    found = {}
    while True:
        try:
            server = t.keep(backend.accept(within))
        except socket.timeout:
            return found
        try:
            found[server.recv(8)] = server
        except ConnectionResetError:  # its client has given up
            pass


def numbered(t, s, n):
    """Clients that have said their number."""
    clients = {}
    for k in range(n):
        client = t.connect(s)
        client.sendall(b"%08d" % k)
        clients[b"%08d" % k] = client
    return clients


# A connection takes two: with an odd number left, there is one for the client and none for its target.
@test(each=[dict(way, limit=n) for way in ways() for n in (LIMIT, LIMIT + 1)])
def clients_that_there_is_no_room_for_wait_and_are_served_later_once_each(t):
    limit = t.way.pop("limit")
    backend = t.backend()
    s = short_one(t, backend, limit=limit)
    clients = numbered(t, s, CLIENTS)
    servers = accept_all(t, backend)
    first = len(servers)
    check(5 <= first < limit // 2, f"{first} served at once with {limit} descriptors")
    check(s.err.find(r"warning: accept paused for 100 ms on .*: Too many open files \(\d+ connections\)"), s.err.lines)
    awake = proc.awake(s.pid, 0.5)
    check(awake < 0.3, f"awake for {awake:.0%} of the time while clients wait")
    pauses = s.stats()["connections"]["accept_pauses"]
    check(0 < pauses < 100, f"accepting was tried again {pauses} times within a second or two")
    for n, name in enumerate(list(servers)):  # those served go on as if nothing was
        exchange(clients[name], servers[name], n, 20000)

    done, rounds = set(), 0
    while servers and rounds < CLIENTS:
        for name, server in servers.items():
            check(name not in done, f"client {name} was served twice")
            done.add(name)
            server.sendall(name)
            server.close()
            client = clients[name]
            equal(client.recv(8), name, "answer")
            equal(end_of(client), "FIN", "end")
            client.close()
        servers = accept_all(t, backend, 0.5)
        rounds += 1
    equal(len(done), CLIENTS, "clients served in the end")
    totals = s.stats_at_rest()
    equal(totals["connections"]["ended"]["finished"], CLIENTS, "finished")
    check(totals["connections"]["accept_pauses"] > 0, totals["connections"])
    warnings = [li for li in s.err.lines if "warning" in li]
    check(len(warnings) <= 6, f"{len(warnings)} warnings: {warnings[:3]}")


@test(each=ways(workers=(1,)))
def clients_that_give_up_waiting_do_no_harm(t):
    backend = t.backend()
    s = short_one(t, backend)
    clients = numbered(t, s, CLIENTS)
    servers = accept_all(t, backend)
    for name, client in clients.items():
        if name not in servers:
            reset(client)
    for name, server in servers.items():
        server.close()
        clients[name].close()
    s.stats_when(lambda totals: totals["connections"]["accepted"] >= CLIENTS)
    s.stats_at_rest()
    accept_all(t, backend, 0.1)
    exchange(*t.pair(s, backend), 1, 10000)
    equal(proc.count_becomes(s.pid, 3, "socket:"), 3, "sockets: a listening one, a pair")


@test(each=ways(workers=(1,)))
def pipes_make_room_for_connections(t):
    backend = t.backend()
    s = short_one(t, backend)
    pairs = t.pairs(s, backend, 3)
    jobs = [(Job(send, server, 1, 1 << 20), Job(receive, client, 1, 1 << 20)) for client, server in pairs]
    for a, b in jobs:
        a.result()
        b.result()
    clients = numbered(t, s, CLIENTS)
    servers = accept_all(t, backend)
    check(len(servers) >= 8, f"{len(servers)} more served with {LIMIT} descriptors, {proc.count(s.pid, 'pipe:')} of them pipes")
    for n, name in enumerate(list(servers)[:3]):
        exchange(clients[name], servers[name], n, 5000)


@test(each=[{"limit": n} for n in (LIMIT, LIMIT + 1)])
def a_pipe_that_has_become_free_makes_room_for_a_client_that_waits(t):
    limit = t.way.pop("limit")
    backend = t.backend()
    s = t.forward(backend, "--workers=1", limits={resource.RLIMIT_NOFILE: limit})
    client, server = t.pair(s, backend, rcvbuf=16 * 1024)
    queued = send_until_full(server, 1)
    equal(s.stats()["pipes"]["out"], 1, "pipes that are out while clients come")
    for _ in range(CLIENTS):
        t.connect(s)  # and says nothing: no other direction asks for the pipe
    before = count_accepts(t, backend)
    equal(s.stats()["pipes"]["out"], 1, "pipes that are out while clients wait")
    receive(client, 1, queued)
    s.stats_when(lambda totals: not totals["pipes"]["out"])
    check(count_accepts(t, backend, 1) >= 1,
          f"nobody more is served with {before + 1} connections and {s.stats()['pipes']['now']} free pipe")


def count_accepts(t, backend, within=0.3):
    n = 0
    while True:
        try:
            t.keep(backend.accept(within))
        except socket.timeout:
            return n
        n += 1


@test(each=ways(workers=(1,)))
def a_limit_lowered_while_it_runs_is_lived_with(t):
    backend = t.backend()
    s = t.forward(backend)
    pairs = t.pairs(s, backend, 5)
    hard = resource.prlimit(s.pid, resource.RLIMIT_NOFILE)[1]
    resource.prlimit(s.pid, resource.RLIMIT_NOFILE, (5, hard))
    waiting = t.connect(s)
    waiting.sendall(stamp(9, 0, 100))
    check(s.err.find("accept paused"), s.err.lines)
    for n, (client, server) in enumerate(pairs):
        exchange(client, server, n, 5000)
    half_close(waiting)
    resource.prlimit(s.pid, resource.RLIMIT_NOFILE, (hard, hard))
    receive(t.keep(backend.accept()), 9, 100)


@test(each=ways(workers=(1,)))
def descriptors_that_come_back_one_by_one_let_clients_in_and_turn_nobody_away(t):
    backend = t.backend()
    s = t.forward(backend)
    hard = resource.prlimit(s.pid, resource.RLIMIT_NOFILE)[1]
    resource.prlimit(s.pid, resource.RLIMIT_NOFILE, (LIMIT, hard))
    clients = numbered(t, s, CLIENTS)
    served = len(accept_all(t, backend))
    for limit in range(LIMIT + 1, LIMIT + 9):  # a client takes two
        resource.prlimit(s.pid, resource.RLIMIT_NOFILE, (limit, hard))
        served += len(accept_all(t, backend))
    c = s.stats()["connections"]
    equal((c["connected"], c["open"], sum(c["ended"].values())), (served, served, 0), f"connected, open, ended in {c}")
    check(served < len(clients), f"all {served} were served: no descriptor was short")


if __name__ == "__main__":
    run(at_once=4)
