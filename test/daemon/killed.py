#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A connection that was cut ends with RST, also when the program is killed; one that was complete does not."""
import socket

from kit import (KIB, MIB, FullBacklog, Job, check, end_of, equal, exchange, half_close, proc, receive, receive_to_end,
                 run, send, test, ways)

EVERY_WAY = ways() + [{"mode": "auto", "workers": 2}]


def kill(s):
    """Ends the program as the kernel does when memory is short."""
    s.process.kill()
    s.process.wait()


@test(each=EVERY_WAY)
def a_killed_program_resets_connections_of_which_every_byte_was_read(t):
    backend = t.backend()
    s = t.forward(backend)
    pairs = t.pairs(s, backend, 10)
    for n, (client, server) in enumerate(pairs):
        exchange(client, server, n, 1 + n * 50 * KIB)
    kill(s)
    equal([(end_of(a), end_of(b)) for a, b in pairs], [("RST", "RST")] * 10, "ends of client and target")


@test(each=EVERY_WAY)
def a_killed_program_resets_a_transfer_that_is_under_way(t):
    backend = t.backend()
    s = t.forward(backend)
    jobs = []
    for n, (client, server) in enumerate(t.pairs(s, backend, 4)):
        source, sink = ((client, server), (server, client))[n % 2]
        jobs.append((Job(send_until_cut, source, n), Job(receive_to_end, sink, n)))
    check(proc.wait_for(lambda: s.stats()["bytes"]["delivered"] > 20 * MIB), "no transfer is under way")
    kill(s)
    for source, sink in jobs:
        source.result()
        equal(sink.result()[0], "RST", "end of a transfer that was cut")


def send_until_cut(s, stream):
    try:
        send(s, stream, 1 << 40)
    except (ConnectionResetError, BrokenPipeError):
        pass


@test(each=EVERY_WAY)
def a_killed_program_resets_what_is_half_closed(t):
    backend = t.backend()
    s = t.forward(backend)
    pairs = t.pairs(s, backend, 6)
    for n, pair in enumerate(pairs):
        done, other = pair if n % 2 else pair[::-1]
        send(done, n, 1000)
        half_close(done)
        equal(receive_to_end(other, n), ("FIN", 1000), "the direction that is complete")
        send(other, n, 1000)
        receive(done, n, 1000)
    kill(s)
    for n, pair in enumerate(pairs):
        done, other = pair if n % 2 else pair[::-1]
        equal(end_of(done), "RST", "end of the direction that was cut")


@test(each=EVERY_WAY)
def a_killed_program_resets_clients_whose_target_has_not_answered(t):
    s = t.forward(t.keep(FullBacklog()))
    clients = [t.connect(s) for _ in range(5)]
    s.stats_when(lambda totals: totals["connections"]["accepted"] == 5)
    kill(s)
    equal([end_of(c) for c in clients], ["RST"] * 5, "ends of clients")


@test(each=EVERY_WAY)
def what_is_still_queued_after_an_orderly_end_is_delivered(t):
    """The relay is over, both of its sockets are closed, and its reader has read nothing yet."""
    size = 1 * MIB
    backend = t.backend(options=[(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 * KIB)])
    s = t.forward(backend)
    for n in range(2):
        pair = t.pair(s, backend, rcvbuf=16 * KIB)
        reader, writer = pair if n else pair[::-1]
        half_close(reader)
        equal(end_of(writer), "FIN", "the reader's end")
        send(writer, n, size)
        half_close(writer)
        equal(s.stats_at_rest()["connections"]["ended"]["finished"], n + 1, "finished")
        equal(receive_to_end(reader, n), ("FIN", size), "what was still queued")


if __name__ == "__main__":
    run(at_once=4)
