#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Nothing waits for a timer: no small message, no banner, no byte typed by hand.

The kernel's own timers are 40 ms (delayed acknowledgement) and 200 ms (more to
come); 35 ms tells them from a machine that is merely busy. A run that has a
stall is run again, since such timers strike every time.
"""
import os
import socket
import threading
import time

from kit import Echo, Job, Skip, check, equal, run, test, ways

STALL_S = 0.035
TRIES = 5
ENOUGH = 5      # late ones to know: a timer strikes far more often than a busy machine
TOO_BUSY = 2.5  # runnable programs for each cpu
EVERY_WAY = ways() + [{"mode": "splice", "pipes": "own", "workers": 1}]


def without_stalls(what, once):
    """once() yields the seconds that each of its steps took."""
    fewest = ENOUGH
    for _ in range(TRIES):
        steps, late = 0, []
        for seconds in once():
            steps += 1
            if seconds > STALL_S:
                late.append(seconds)
            if len(late) == ENOUGH:
                break
        if not late:
            return
        fewest = min(fewest, len(late))
    busy = os.getloadavg()[0] / os.cpu_count()
    if fewest < ENOUGH and busy > TOO_BUSY:
        raise Skip(f"the machine is too busy to tell: a load of {busy:.1f} for each cpu")
    check(False, f"{what}: {len(late)} of {steps} took longer than 35 ms, up to {1000 * max(late):.0f} ms")


def receive_exactly(s, n):
    got = b""
    while len(got) < n:
        data = s.recv(n - len(got))
        if not data:
            raise AssertionError(f"end after {len(got)} of {n} bytes")
        got += data
    return got


@test(each=EVERY_WAY)
def two_thousand_questions_of_32_bytes_are_answered_without_a_stall(t):
    s = t.forward(t.keep(Echo()))
    client = t.connect(s)

    def once():
        for n in range(2000):
            question = b"%032d" % n
            since = time.perf_counter()
            client.sendall(question)
            answer = receive_exactly(client, 32)
            yield time.perf_counter() - since
            if answer != question:
                raise AssertionError(f"answer {answer!r} to {question!r}")
    without_stalls("questions", once)


@test(each=EVERY_WAY)
def five_small_writes_before_an_answer_wait_for_no_acknowledgement(t):
    backend = t.backend()
    s = t.forward(backend)
    client, server = t.pair(s, backend)

    def once():
        for n in range(40):
            a, b = ((client, server), (server, client))[n % 2]
            since = time.perf_counter()
            for k in range(5):
                a.sendall(b"%d" % k * 100)
                time.sleep(0.0005)  # a segment each, so that Nagle would hold them back
            equal(receive_exactly(b, 500), b"".join(b"%d" % k * 100 for k in range(5)), "bytes")
            b.sendall(b"ok")
            receive_exactly(a, 2)
            yield time.perf_counter() - since
    without_stalls("writes", once)


@test(each=ways())
def a_banner_arrives_at_once_at_a_client_that_says_nothing(t):
    backend = t.backend()
    s = t.forward(backend)

    def once():
        for _ in range(50):
            since = time.perf_counter()
            client, server = t.pair(s, backend)
            server.sendall(b"220 ready\r\n")
            equal(receive_exactly(client, 11), b"220 ready\r\n", "banner")
            yield time.perf_counter() - since
    without_stalls("banners", once)


@test(each=EVERY_WAY)
def what_is_typed_byte_by_byte_is_echoed_byte_by_byte(t):
    s = t.forward(t.keep(Echo()))
    client = t.connect(s)

    def once():
        for n in range(200):
            since = time.perf_counter()
            client.sendall(bytes([n]))
            equal(client.recv(10), bytes([n]), "echo")
            yield time.perf_counter() - since
    without_stalls("bytes", once)


@test(each=EVERY_WAY)
def answers_of_every_size_have_no_tail_that_waits(t):
    """16 buffers of a pipe, and multiples: where the kernel thinks that more is to come."""
    backend = t.backend()
    s = t.forward(backend)
    client, server = t.pair(s, backend)
    sizes = [4096 * n for n in range(1, 34)] + [65536 * n for n in (1, 2, 4, 8, 15, 16)] + [1448 * 16, 1448 * 32, 32768 * 16]

    def once():
        for size in sizes:
            data = bytes(size)
            client.sendall(b"?")
            server.recv(1)
            since = time.perf_counter()
            server.settimeout(5)
            server.sendall(data)
            receive_exactly(client, size)
            yield time.perf_counter() - since
    without_stalls("answers", once)


@test(each=ways(workers=(1,)))
def short_connections_are_over_at_once(t):
    backend = t.backend()
    s = t.forward(backend)

    def once():
        for _ in range(100):
            since = time.perf_counter()
            client, server = t.pair(s, backend)
            client.sendall(b"GET")
            client.shutdown(socket.SHUT_WR)
            receive_exactly(server, 3)
            server.sendall(b"200")
            server.close()
            receive_exactly(client, 3)
            equal(client.recv(1), b"", "end")
            client.close()
            yield time.perf_counter() - since
    without_stalls("connections", once)


@test(each=ways(workers=(1, 2)))
def small_messages_do_not_wait_behind_bulk(t):
    backend = t.backend()
    s = t.forward(backend)
    going = threading.Event()
    bulk = t.pairs(s, backend, 3)

    def pour(server):
        try:
            while not going.is_set():
                server.sendall(bytes(1 << 18))
        except OSError:
            pass

    def drink(client):
        try:
            while client.recv(1 << 18):
                pass
        except OSError:
            pass
    jobs = [Job(pour, b) for _, b in bulk] + [Job(drink, c) for c, _ in bulk]
    client, server = t.pair(s, backend)
    times = []
    for _ in range(60):
        since = time.perf_counter()
        client.sendall(b"x" * 32)
        receive_exactly(server, 32)
        times.append(time.perf_counter() - since)
    going.set()
    for c, b in bulk:
        b.close()
    for job in jobs:
        job.result()
    times.sort()
    check(times[len(times) // 2] < 0.1, f"median {1000 * times[len(times) // 2]:.1f} ms beside three bulk streams")


if __name__ == "__main__":
    run()
