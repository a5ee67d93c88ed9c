#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Time limits of a connection: what ends it, what does not, and how both peers are told."""
import socket
import time

from kit import (KIB, MIB, Job, check, end_of, equal, exchange, half_close, receive, receive_to_end, reset, run, send,
                 send_until_full, test, ways)

LIMIT_S = 1
LIMIT = "1s"


def cut_off(s, name, since, *sockets):
    """Each must be reset, after the limit and not long after it, and be counted by its name."""
    equal([end_of(x) for x in sockets], ["RST"] * len(sockets), "what the peers are told")
    took = time.monotonic() - since
    check(0.9 * LIMIT_S < took < LIMIT_S + 5, f"cut off after {took:.3f} s, not about {LIMIT_S}")
    ended = s.stats_at_rest()["connections"]["ended"]
    equal({k: n for k, n in ended.items() if n}, {name: 1}, "how it ended")


@test(each=ways())
def a_connection_without_a_byte_either_way_is_ended_by_idle_timeout(t):
    backend = t.backend()
    s = t.forward(backend, "--idle-timeout=" + LIMIT)
    since = time.monotonic()
    cut_off(s, "idle_timeout", since, *t.pair(s, backend))


@test(each=ways(workers=(1,)))
def bytes_one_way_keep_a_connection_from_being_idle(t):
    backend = t.backend()
    s = t.forward(backend, "--idle-timeout=" + LIMIT)
    for n in range(2):
        pair = t.pair(s, backend)
        a, b = pair[n], pair[1 - n]
        for k in range(8):
            a.sendall(b"x")
            equal(b.recv(1), b"x", f"byte {k}")
            time.sleep(LIMIT_S / 4)
    equal(s.stats()["connections"]["ended"]["idle_timeout"], 1, "of two, the one that has fallen silent")


@test(each=ways(workers=(1,)))
def bytes_that_the_reader_s_kernel_takes_now_and_then_keep_a_connection_from_being_idle(t):
    backend = t.backend()
    s = t.forward(backend, "--idle-timeout=" + LIMIT)
    client, server = t.pair(s, backend, rcvbuf=16 * KIB)
    size = 160 * KIB
    send(server, 1, size)
    # All has left sluice by now, into its own kernel: from here on only acknowledgements move.
    b = s.stats_when(lambda totals: totals["bytes"]["delivered"] == size)["bytes"]
    equal(b["delivered"], size, "delivered")
    for at in range(0, size, 16 * KIB):
        receive(client, 1, 16 * KIB, at)
        time.sleep(LIMIT_S / 3)
    equal(s.stats()["connections"]["ended"]["idle_timeout"], 0, "ended as idle while its reader read")
    equal(end_of(client), "RST", "end of one that has fallen silent")


@test(each=ways(workers=(1,)))
def a_half_closed_connection_that_falls_silent_is_ended_by_half_close_timeout(t):
    backend = t.backend()
    s = t.forward(backend, "--half-close-timeout=" + LIMIT)
    client, server = t.pair(s, backend)
    time.sleep(1.5 * LIMIT_S)
    exchange(client, server, 1, 1000)  # not half-closed: no limit
    half_close(client)
    equal(end_of(server), "FIN", "end of what the client said")
    for k in range(6):
        server.sendall(b"x")
        equal(client.recv(1), b"x", f"byte {k} of the answer")
        time.sleep(LIMIT_S / 4)
    since = time.monotonic() - LIMIT_S / 4
    cut_off(s, "half_close_timeout", since, client)


@test(each=ways(workers=(1,)))
def a_half_closed_connection_has_the_shorter_of_both_limits_and_its_name(t):
    backend = t.backend()
    for options, name in ((["--idle-timeout=" + LIMIT], "idle_timeout"),
                          (["--idle-timeout=" + LIMIT, "--half-close-timeout=1h"], "idle_timeout"),
                          (["--idle-timeout=1h", "--half-close-timeout=" + LIMIT], "half_close_timeout")):
        s = t.forward(backend, *options)
        client, server = t.pair(s, backend)
        since = time.monotonic()
        half_close(client)
        equal(end_of(server), "FIN", "end of what the client said")
        cut_off(s, name, since, client)


@test(each=ways(workers=(1,)))
def a_connection_that_is_older_than_max_lifetime_is_ended_whatever_it_does(t):
    backend = t.backend()
    s = t.forward(backend, "--max-lifetime=" + LIMIT)
    since = time.monotonic()
    client, server = t.pair(s, backend)
    sender = Job(_send_for_ever, server)
    reader = Job(receive_to_end, client, 1)
    equal(reader.result()[0], "RST", "end")
    took = time.monotonic() - since
    check(0.9 * LIMIT_S < took < LIMIT_S + 5, f"cut off after {took:.3f} s, not about {LIMIT_S}")
    sender.result()
    equal(s.stats_at_rest()["connections"]["ended"]["max_lifetime"], 1, "max_lifetime")


def _send_for_ever(s):
    at = 0
    try:
        while True:
            send(s, 1, 256 * KIB, at)
            at += 256 * KIB
    except OSError:
        pass


@test(each=ways(workers=(1,)))
def without_limits_a_silent_connection_stays(t):
    backend = t.backend()
    s = t.forward(backend)
    client, server = t.pair(s, backend)
    half = t.pair(s, backend)
    half_close(half[0])
    time.sleep(1)
    exchange(client, server, 1, 1000)
    send(half[1], 1, 1000)
    receive(half[0], 1, 1000)
    equal(s.stats()["connections"]["open"], 2, "open")


@test(each=ways(workers=(1,)))
def linger_is_how_long_bytes_before_a_reset_may_take(t):
    backend = t.backend()
    s = t.forward(backend, "--linger=" + LIMIT)
    client, server = t.pair(s, backend, rcvbuf=16 * KIB)
    send_until_full(server, 1)
    since = time.monotonic()
    reset(server)
    s.stats_at_rest()
    took = time.monotonic() - since
    check(0.9 * LIMIT_S < took < LIMIT_S + 5, f"over after {took:.3f} s, not about {LIMIT_S}")
    equal(receive_to_end(client, 1)[0], "RST", "what the client is told")
    check(s.stats()["bytes"]["dropped_because"]["source_reset"] > 0, s.stats()["bytes"])


@test(each=ways(workers=(1,)))
def discard_is_how_much_may_still_be_said_to_nobody(t):
    backend = t.backend()
    for limit, least, most in (("1M", MIB, 2 * MIB), ("0", 0, MIB), ("64M", 8 * MIB, 80 * MIB)):
        s = t.forward(backend, "--discard=" + limit)
        client, server = t.pair(s, backend, rcvbuf=16 * KIB)
        send_until_full(server, 1)  # so that it must wait for the client, who goes on sending
        reset(server)
        sender = Job(_send_for_ever, client)
        b = s.stats_when(lambda totals: totals["bytes"]["dropped_because"]["discarded"] >= max(least, 1))["bytes"]
        time.sleep(0.1)
        reads = s.stats()["bytes"]["dropped_because"]["discarded"]
        check(least <= reads <= most, f"{reads} bytes discarded with a limit of {limit}: {b}")
        client.shutdown(socket.SHUT_RDWR)
        sender.result()


if __name__ == "__main__":
    run(at_once=6)
