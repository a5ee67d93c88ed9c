#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every byte arrives once, in order and at the other end of its own connection."""
import socket
import time

from kit import KIB, MIB, Job, check, equal, exchange, half_close, receive, receive_to_end, run, send, test, ways

EVERY_WAY = ways()
OWN = {"mode": "splice", "pipes": "own", "workers": 1}
AUTO = {"mode": "auto", "workers": 2}


def both_ways_at_once(client, server, stream, size, **how):
    jobs = [Job(send, client, 2 * stream, size, **how), Job(send, server, 2 * stream + 1, size, **how),
            Job(receive, server, 2 * stream, size), Job(receive, client, 2 * stream + 1, size)]
    for job in jobs:
        job.result()


@test(each=EVERY_WAY + [OWN, AUTO])
def bytes_arrive_both_ways_at_once(t):
    backend = t.backend()
    s = t.forward(backend)
    client, server = t.pair(s, backend)
    both_ways_at_once(client, server, 1, 24 * MIB)


@test(each=EVERY_WAY + [OWN, AUTO])
def every_size_arrives_from_one_byte_to_more_than_a_pipe(t):
    backend = t.backend()
    s = t.forward(backend)
    client, server = t.pair(s, backend)
    at = [0, 0]
    for size in (1, 2, 4095, 4096, 4097, 65535, 65536, 65537, MIB - 1, MIB, MIB + 1, 3 * MIB, 1):
        for i, (a, b) in enumerate(((client, server), (server, client))):
            job = Job(send, a, i, size, at[i])
            receive(b, i, size, at[i])
            job.result()
            at[i] += size


@test(each=EVERY_WAY)
def many_connections_at_once_never_mix_their_bytes(t):
    backend = t.backend()
    s = t.forward(backend)
    pairs = t.pairs(s, backend, 40)
    jobs = [Job(both_ways_at_once, c, b, n, MIB) for n, (c, b) in enumerate(pairs)]
    for job in jobs:
        job.result()


@test(each=EVERY_WAY + [OWN, AUTO])
def a_slow_reader_of_small_segments_gets_all(t):
    backend = t.backend(options=[(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 * KIB),
                                 (socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1000)])
    s = t.forward(backend)
    client, server = t.pair(s, backend, rcvbuf=16 * KIB, maxseg=1000)
    jobs = [Job(send, server, 1, 2 * MIB), Job(send, client, 2, 2 * MIB)]
    for at in range(0, 2 * MIB, 32 * KIB):  # each write of it is taken in parts
        receive(client, 1, 32 * KIB, at)
        receive(server, 2, 32 * KIB, at)
        time.sleep(0.003)
    for job in jobs:
        job.result()


@test(each=EVERY_WAY + [OWN, AUTO])
def thousands_of_tiny_writes_arrive_in_order(t):
    backend = t.backend()
    s = t.forward(backend)
    client, server = t.pair(s, backend)
    both_ways_at_once(client, server, 1, 60 * KIB, chunk=13)


@test(each=EVERY_WAY)
def short_connections_one_after_the_other_are_each_their_own(t):
    backend = t.backend()
    s = t.forward(backend)
    for n in range(200):
        client, server = t.pair(s, backend)
        exchange(client, server, n, 1 + 37 * n)
        half_close(client)
        equal(receive_to_end(server, 0, 0), ("FIN", 0), "the backend's end")
        server.close()
        equal(receive_to_end(client, 0, 0), ("FIN", 0), "the client's end")
        client.close()


@test(each=[{"mode": "splice", "pipe-size": "64K"}, {"mode": "splice", "pipe-size": "1G"},
            {"mode": "copy", "buffer-size": "4K"}, {"mode": "copy", "buffer-size": "16M"}])
def the_smallest_and_the_largest_conduits_carry_bytes(t):
    backend = t.backend()
    s = t.forward(backend)
    client, server = t.pair(s, backend)
    both_ways_at_once(client, server, 1, 8 * MIB)
    client.close()
    server.close()
    both = s.stats_at_rest()["bytes"]
    equal(both["delivered"], 16 * MIB, "delivered")
    check(both["by_pipe" if t.way["mode"] == "copy" else "by_buffer"] == 0, both)


if __name__ == "__main__":
    run(at_once=2)
