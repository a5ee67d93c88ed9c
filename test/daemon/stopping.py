#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""SIGTERM and SIGINT: it stops listening at once, lets connections finish, and always ends."""
import os
import signal
import socket
import struct
import threading
import time

from kit import (KIB, MIB, MODES, Echo, FullBacklog, Job, check, end_of, equal, exchange, half_close, proc, receive,
                 receive_to_end, run, send, send_until_full, test, ways)


def took(since):
    return time.monotonic() - since


def ends_soon(s, what, within=15):
    since = time.monotonic()
    equal(s.wait(), 0, f"exit status {what}")
    check(took(since) < within, f"it took {took(since):.3f} s {what}")


def closed_to_new_clients(s):
    check(proc.wait_for(lambda: not proc.listens(s.pid, s.addr[1])), "it still listens")
    try:
        socket.create_connection(s.addr, 2).close()
    except ConnectionRefusedError:
        return
    check(False, "a new client was let in")


@test(each=ways())
def an_idle_one_ends_at_once(t):
    for number in signal.SIGTERM, signal.SIGINT:
        times = []
        for _ in range(3):  # a machine may be busy
            s = t.forward("127.0.0.1:9")
            since = time.monotonic()
            s.signal(number)
            equal(s.wait(), 0, "exit status")
            times.append(took(since))
            check(s.err.find("sluice: stopped: 0 connections, 0 bytes delivered"), s.err.lines)
        # A sanitizer has a look at all memory then.
        check(min(times) < (5 if proc.sanitized(t.binary) else 0.5), f"seconds from {number.name} to its end, without a connection: {times}")


@test(each=ways())
def a_running_transfer_finishes_while_nobody_new_is_let_in(t):
    backend = t.backend()
    s = t.forward(backend, "--drain-timeout=60s")
    client, server = t.pair(s, backend)
    send(server, 1, 1000)
    receive(client, 1, 1000)
    s.signal(signal.SIGTERM)
    closed_to_new_clients(s)
    jobs = [Job(send, server, 1, 8 * MIB, 1000), Job(receive, client, 1, 8 * MIB, 1000)]
    send(client, 2, MIB)
    receive(server, 2, MIB)
    half_close(client)
    equal(end_of(server), "FIN", "end of what the client said")
    for job in jobs:
        job.result()
    time.sleep(0.1)
    check(s.alive(), "it ended before its connection")
    server.close()
    equal(end_of(client), "FIN", "end of what the backend said")
    ends_soon(s, "after its last connection")
    equal(s.out.wait_end() and s.stop()["connections"]["ended"]["finished"], 1, "finished")


@test(each=ways())
def what_has_not_finished_by_drain_timeout_is_reset(t):
    backend = t.backend()
    s = t.forward(backend, "--drain-timeout=500ms")
    idle = t.pair(s, backend)
    full = t.pair(s, backend, rcvbuf=16 * KIB)
    send_until_full(full[1], 1)
    since = time.monotonic()
    s.signal(signal.SIGTERM)
    equal([end_of(x) for x in idle], ["RST", "RST"], "ends of an idle connection")
    check(0.45 < took(since) < 5, f"cut off after {took(since):.3f} s, not 0.5")
    equal(receive_to_end(full[0], 1)[0], "RST", "end of a stalled stream: cut short must not look finished")
    ends_soon(s, "after the drain timeout")
    equal(s.stop()["connections"]["ended"]["stopped"], 2, "stopped")


@test(each=ways())
def a_second_signal_ends_it_now(t):
    for second in signal.SIGTERM, signal.SIGINT:
        backend = t.backend()
        s = t.forward(backend, "--drain-timeout=1h")
        client, server = t.pair(s, backend)
        exchange(client, server, 1, 1000)
        s.signal(signal.SIGTERM)
        closed_to_new_clients(s)
        check(s.alive(), "it ended at the first one")
        s.signal(second)
        ends_soon(s, f"after the second, {second.name}")
        equal(end_of(client), "RST", "what the client is told")


@test(each=ways(workers=(1,)))
def a_drain_timeout_of_nothing_is_now(t):
    backend = t.backend()
    s = t.forward(backend, "--drain-timeout=0")
    client, _ = t.pair(s, backend)
    s.signal(signal.SIGTERM)
    ends_soon(s, "with a drain timeout of 0")
    equal(end_of(client), "RST", "what the client is told")


@test(each=ways())
def clients_that_still_connect_are_let_finish_or_are_cut_off(t):
    target = t.keep(FullBacklog())
    s = t.forward(target, "--drain-timeout=300ms")
    clients = [t.connect(s) for _ in range(5)]
    s.stats_when(lambda totals: totals["connections"]["open"] == 5)
    s.signal(signal.SIGTERM)
    equal([end_of(c) for c in clients], ["RST"] * 5, "what they are told")
    ends_soon(s, "after the drain timeout")

    target = t.keep(FullBacklog())
    s = t.forward(target, "--drain-timeout=60s")
    client = t.connect(s)
    send(client, 1, 100)
    half_close(client)
    s.stats_when(lambda totals: totals["connections"]["open"] == 1)
    s.signal(signal.SIGTERM)
    target.make_room()
    server = t.keep(target.accept())
    while receive_to_end(server, 1)[1] != 100:
        server = t.keep(target.accept())  # one that filled the queue
    server.close()
    equal(end_of(client), "FIN", "what the client is told")
    ends_soon(s, "after its last connection")


@test(each=ways())
def totals_may_be_asked_for_while_it_drains(t):
    backend = t.backend()
    s = t.forward(backend, "--drain-timeout=60s")
    client, server = t.pair(s, backend)
    s.signal(signal.SIGTERM)
    closed_to_new_clients(s)
    equal(s.stats()["connections"]["open"], 1, "open")
    client.close()
    server.close()
    ends_soon(s, "after its last connection")


class Load:
    """Clients that come, talk and go all the time, in threads, whatever they are told."""

    def __init__(self, addr, threads=6):
        self.going = True
        self.done = 0
        self._threads = [threading.Thread(target=self._work, args=(addr, n), daemon=True) for n in range(threads)]
        for thread in self._threads:
            thread.start()

    def _work(self, addr, n):
        while self.going:
            try:
                with socket.create_connection(addr, 2) as s:
                    s.sendall(bytes(20 * KIB))
                    s.recv(10 * KIB)
                    if n % 3 == 0:
                        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.done += 1
            except ConnectionRefusedError:
                return
            except OSError:
                pass

    def close(self):
        self.going = False
        for thread in self._threads:
            thread.join(5)


@test(each=ways(workers=(2,)))
def sigterm_under_load_never_hangs(t):
    backend = t.keep(Echo())
    for n in range(10):
        s = t.forward(backend, "--drain-timeout=300ms")
        load = Load(s.addr)
        check(proc.wait_for(lambda: load.done > 20), "the load does not run")
        time.sleep(0.002 * n)
        s.signal(signal.SIGTERM)
        status = s.wait()
        load.close()
        equal(status, 0, f"exit status in round {n}")
        c = s.stop()["connections"]
        equal(c["accepted"], sum(c["ended"].values()), f"accepted, against ended, in round {n}: {c}")


@test(each=[{"workers": 4}])
def signals_in_every_order_never_hang(t):
    backend = t.keep(Echo())
    for n in range(16):
        s = t.forward(backend, "--drain-timeout=200ms")
        load = Load(s.addr, 3)
        check(proc.wait_for(lambda: load.done > 3), "the load does not run")
        for number in (signal.SIGUSR1, signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)[n % 4:]:
            if s.alive():
                s.signal(number)
                time.sleep(0.0005 * (n % 3))
        if n % 4 == 3 or s.alive():
            s.process.send_signal(signal.SIGTERM)
        equal(s.wait(), 0, f"exit status in round {n}")
        load.close()


@test(each=MODES)
def a_signal_right_after_the_start_ends_it_well(t):
    for n in range(20):
        s = t.forward("127.0.0.1:9")
        s.signal((signal.SIGTERM, signal.SIGINT)[n % 2])
        equal(s.wait(), 0, "exit status")


@test()
def sigusr1_before_it_is_ready_does_not_kill_it(t):
    path = os.path.join(t.folder(), "rules.conf")
    os.mkfifo(path)
    s = t.sluice("-c", path, ready=False)
    rules = []
    check(proc.wait_for(lambda: _opened_to_write(path, rules)), "it does not read its rules")
    with open(rules[0], "w") as f:
        s.signal(signal.SIGUSR1)
        time.sleep(0.05)
        check(s.alive(), f"SIGUSR1 killed it: exit status {s.process.returncode}")
        f.write("127.0.0.1 0 127.0.0.1 9\n")
    check(s.err.find("ready: "), s.err.lines)


def _opened_to_write(path, fds):
    try:
        fds.append(os.open(path, os.O_WRONLY | os.O_NONBLOCK))  # only once it reads
        return True
    except OSError:
        return False


@test(each=ways(modes=("splice",)))
def a_port_may_be_listened_at_again_at_once(t):
    backend = t.backend()
    s = t.forward(backend)
    addr = s.addr
    client, server = t.pair(s, backend)
    exchange(client, server, 1, 1000)
    server.close()  # so that it closes first towards the client, and its port is in TIME_WAIT
    equal(end_of(client), "FIN", "end")
    client.close()
    s.stats_at_rest()
    s.stop()
    s = t.sluice("%s:%d" % addr, "%s:%d" % backend.addr)
    exchange(*t.pair(s, backend), 2, 1000)


if __name__ == "__main__":
    run(at_once=3)
