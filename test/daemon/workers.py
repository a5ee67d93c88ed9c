#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Several workers: connections are spread, and each is served once."""
import os
import socket
import time

from kit import MODES, Echo, Job, check, connect, equal, exchange, proc, run, stamp, test, ways


def thread_names(pid):
    names = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/comm") as f:
            names.append(f.read().strip())
    return sorted(names)


def wakeups_of_workers(s):
    """How often each has gone to sleep so far."""
    used = []
    for tid in os.listdir(f"/proc/{s.pid}/task"):
        with open(f"/proc/{s.pid}/task/{tid}/status") as f:
            switches = [int(li.split()[1]) for li in f if li.startswith("voluntary")]
        with open(f"/proc/{s.pid}/task/{tid}/comm") as f:
            if f.read().startswith("sluice/"):
                used.append(switches[0])
    return used


def brief(s, backend):
    """Eight at once, each with a byte."""
    pairs = []
    for _ in range(8):
        client = connect(s.addr)
        pairs.append((client, backend.accept()))
    for client, server in pairs:
        client.sendall(b"x")
        equal(server.recv(100), b"x", "byte")
        server.close()
        client.close()


def sockets_of_workers(s, all_):
    """How many each worker watches beside its own two, once they watch @all_: a connection may be on its way to one.

    The listener is one more, of the worker that accepts.
    """
    def each():
        return [n - 2 for n in proc.watched(s.pid)[1:]]  # the main thread watches fewest
    equal(proc.wait_for(lambda: sum(each()) == all_ + 1) or sum(each()), True, "sockets that are watched")
    return each()


@test(each=[{"workers": n} for n in (1, 2, 4)])
def there_is_a_thread_for_each_and_the_main_one(t):
    s = t.forward("127.0.0.1:9")
    n = t.way["workers"]
    want = ["sluice", "sluice-stderr"] + [f"sluice/{i}" for i in range(n)]
    check(proc.wait_for(lambda: thread_names(s.pid) == want), f"threads: {thread_names(s.pid)}")
    equal(len(proc.watched(s.pid)), n + 1, "epoll sets")


@test(each=ways(workers=(4,)))
def connections_are_spread_over_the_workers(t):
    backend = t.backend()
    s = t.forward(backend)
    pairs = t.pairs(s, backend, 80)
    for n, (client, server) in enumerate(pairs):
        exchange(client, server, n, 500)
    spread = sockets_of_workers(s, 2 * 80)
    equal(len(spread), 4, "workers")
    check(max(spread) <= 2 * 80 / 4 + 4 and min(spread) >= 2 * 80 / 4 - 4, f"sockets watched by each worker: {spread}")
    for client, server in pairs[:40]:
        client.close()
        server.close()
    s.stats_when(lambda totals: totals["connections"]["open"] == 40)
    t.pairs(s, backend, 40)  # where there are fewer now
    spread = sockets_of_workers(s, 2 * 80)
    check(max(spread) <= 2 * 80 / 4 + 4 and min(spread) >= 2 * 80 / 4 - 4, f"after coming and going: {spread}")


@test(each=[{"workers": 4}])
def every_worker_works_under_load(t):
    backend = t.keep(Echo())
    s = t.forward(backend)

    def talk(n):
        for k in range(40):
            with connect(s.addr) as c:
                data = stamp(n, 0, 20000 + k)
                sender = Job(c.sendall, data)
                got = b""
                while len(got) < len(data):
                    got += c.recv(1 << 16)
                sender.result()
                if got != data:
                    raise AssertionError(f"client {n}: wrong echo in round {k}")
                time.sleep(0.025)  # or it would be brief
    for job in [Job(talk, n) for n in range(16)]:
        job.result()
    used = wakeups_of_workers(s)
    check(min(used) > 100, f"wake-ups of each worker after 640 connections: {used}")


@test(each=[{"workers": 4}])
def brief_connections_that_come_often_wake_nobody_else(t):
    """Nor do those that last, behind them, stay with one."""
    backend = t.backend()
    s = t.forward(backend)
    for _ in range(5):  # a busy machine may make them last, or have one wake-up do for two
        for _ in range(5):
            brief(s, backend)
        before = wakeups_of_workers(s)
        for _ in range(25):
            brief(s, backend)
        woken = sorted(b - a for a, b in zip(before, wakeups_of_workers(s)))
        if woken[2] <= 20 and woken[3] >= 200:
            break
    # On a busy machine one wake-up may be for several events: fewer than connections, then.
    check(woken[2] <= 20 and woken[3] >= 50, f"wake-ups of each worker in 200 connections: {woken}")
    time.sleep(0.1)
    base = sum(proc.watched(s.pid))
    t.pairs(s, backend, 8)
    check(proc.wait_for(lambda: sum(proc.watched(s.pid)) == base + 16), "they are not all watched")
    spread = sockets_of_workers(s, 16)
    check(max(spread) - min(spread) <= 1, f"sockets of 8 connections that last, but for the listener's: {spread}")


@test(each=[dict(m, workers=w) for m in MODES for w in (1, 4)])
def a_connection_is_served_once(t):
    backend = t.backend()
    s = t.forward(backend)

    def come(n):
        c = connect(s.addr)
        c.sendall(b"%08d" % n)
        return c
    clients = [job.result() for job in [Job(come, n) for n in range(200)]]
    seen = []
    for _ in clients:
        server = t.keep(backend.accept())
        seen.append(server.recv(8))
    equal(len(set(seen)), 200, "clients that came through")
    try:
        backend.accept(0.2)
        check(False, "the target was connected to more often than there were clients")
    except socket.timeout:
        pass
    c = s.stats()["connections"]
    equal((c["accepted"], c["connected"], c["open"]), (200, 200, 200), "accepted, connected, open")
    for client in clients:
        client.close()


if __name__ == "__main__":
    run()
