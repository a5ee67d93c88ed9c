#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""FIN arrives as FIN and RST as RST, each behind the bytes that came before it."""
import socket
import time

from kit import (KIB, MIB, Job, check, end_of, equal, exchange, half_close, proc, receive, receive_to_end, reset, run,
                 send, stamp, test, ways)

EVERY_WAY = ways() + [{"mode": "splice", "pipes": "own", "workers": 1}]


def sides(client, server):
    """Each end as the one that acts, with the other."""
    return (client, server), (server, client)


def begin(t):
    backend = t.backend()
    return backend, t.forward(backend)


@test(each=EVERY_WAY)
def half_close_lets_the_answer_through(t):
    backend, s = begin(t)
    for n in range(2):
        a, b = sides(*t.pair(s, backend))[n]
        send(a, 1, 100 * KIB)
        half_close(a)
        equal(receive_to_end(b, 1), ("FIN", 100 * KIB), "the question")
        time.sleep(0.05)
        job = Job(send, b, 2, 3 * MIB)
        receive(a, 2, 3 * MIB)
        job.result()
        half_close(b)
        equal(end_of(a), "FIN", "the answer's end")


@test(each=EVERY_WAY)
def a_fin_comes_behind_the_last_byte_of_a_long_stream(t):
    backend, s = begin(t)
    for n in range(2):
        a, b = sides(*t.pair(s, backend))[n]

        def say_all():
            send(a, 1, 8 * MIB)
            half_close(a)
        job = Job(say_all)
        time.sleep(0.05)
        equal(receive_to_end(b, 1), ("FIN", 8 * MIB), "stream")
        job.result()


@test(each=EVERY_WAY)
def a_close_without_a_word_is_a_fin(t):
    backend, s = begin(t)
    for n in range(2):
        a, b = sides(*t.pair(s, backend))[n]
        a.close()
        equal(end_of(b), "FIN", "end")


@test(each=EVERY_WAY)
def a_reset_is_a_reset_on_an_idle_connection(t):
    backend, s = begin(t)
    for n in range(2):
        a, b = sides(*t.pair(s, backend))[n]
        exchange(a, b, 1, 1000)
        reset(a)
        equal(end_of(b), "RST", "end")
    equal(proc.count_becomes(s.pid, 1, "socket:"), 1, "sockets left")


@test(each=EVERY_WAY)
def a_reset_is_a_reset_after_a_fin(t):
    backend, s = begin(t)
    for n in range(2):
        a, b = sides(*t.pair(s, backend))[n]
        half_close(a)
        equal(end_of(b), "FIN", "first end")
        reset(a)
        time.sleep(0.1)
        try:
            for _ in range(20):
                b.sendall(b"anybody there?")
                time.sleep(0.01)
        except (ConnectionResetError, BrokenPipeError):
            continue
        check(False, "no reset came through")


@test(each=EVERY_WAY)
def bytes_come_before_the_reset_that_followed_them(t):
    backend, s = begin(t)
    for n in range(2):
        for size in (1, 20 * KIB, 100 * KIB):
            a, b = sides(*t.pair(s, backend))[n]
            send(a, 1, size)
            time.sleep(0.1)  # until they have arrived: SO_LINGER 0 drops the rest
            reset(a)
            equal(receive_to_end(b, 1), ("RST", size), "stream")


@test(each=EVERY_WAY)
def a_reset_in_mid_stream_is_no_fin(t):
    backend, s = begin(t)
    for n in range(2):
        a, b = sides(*t.pair(s, backend))[n]
        reader = Job(receive_to_end, b, 1)
        send(a, 1, 8 * MIB)
        reset(a)
        equal(reader.result()[0], "RST", "end")


@test(each=EVERY_WAY)
def an_answer_that_comes_early_and_a_close_reach_a_client_that_still_sends(t):
    backend, s = begin(t)
    for _ in range(5):
        client, server = t.pair(s, backend, timeout=5)

        def keep_sending():
            try:
                for n in range(400):
                    client.sendall(stamp(1, n * 64 * KIB, 64 * KIB))
                    time.sleep(0.0005)
            except OSError:
                pass
        sender = Job(keep_sending)
        receive(server, 1, 100 * KIB)
        send(server, 2, 50 * KIB)
        server.close()  # with bytes unread: its kernel resets
        kind, got = receive_to_end(client, 2)
        equal(got, 50 * KIB, f"answer before {kind}")
        client.close()
        sender.result()


@test(each=EVERY_WAY)
def a_client_that_reads_only_when_it_has_sent_all_gets_an_early_answer(t):
    backend, s = begin(t)
    client, server = t.pair(s, backend, rcvbuf=16 * KIB, timeout=8)
    send(client, 1, 100 * KIB)
    receive(server, 1, 100 * KIB)
    send(server, 2, 200 * KIB)  # more than the client takes without reading
    time.sleep(0.1)
    send(client, 1, KIB, 100 * KIB)
    reset(server)
    send(client, 1, 24 * MIB, 101 * KIB)  # must not get stuck: what it says goes nowhere
    kind, got = receive_to_end(client, 2)
    equal(got, 200 * KIB, f"answer before {kind}")


@test(each=EVERY_WAY)
def a_graceful_early_answer_reaches_a_client_that_still_sends(t):
    backend, s = begin(t)
    client, server = t.pair(s, backend)
    sender = Job(send, client, 1, 8 * MIB)
    receive(server, 1, 100 * KIB)
    send(server, 2, 50 * KIB)
    half_close(server)
    equal(receive_to_end(client, 2), ("FIN", 50 * KIB), "answer")
    receive(server, 1, 8 * MIB - 100 * KIB, 100 * KIB)
    sender.result()
    half_close(client)
    equal(end_of(server), "FIN", "end of what the client said")


@test(each=EVERY_WAY)
def a_peer_that_stops_reading_one_way_does_not_stop_the_other(t):
    backend, s = begin(t)
    for n in range(2):
        a, b = sides(*t.pair(s, backend))[n]
        stuck = Job(send, a, 1, 24 * MIB)
        time.sleep(0.2)
        job = Job(send, b, 2, 4 * MIB)
        receive(a, 2, 4 * MIB)
        job.result()
        check(stuck.running(), "all 24 MiB went somewhere that nobody reads")
        receive(b, 1, 24 * MIB)
        stuck.result()


@test(each=EVERY_WAY)
def an_urgent_byte_arrives_as_urgent_in_its_place(t):
    backend, s = begin(t)
    for n in range(2):
        a, b = sides(*t.pair(s, backend))[n]
        b.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
        send(a, 1, 10 * KIB)
        receive(b, 1, 10 * KIB)
        a.send(b"!", socket.MSG_OOB)
        send(a, 2, 10 * KIB)
        half_close(a)
        check(_at_mark_within(b), "no urgent mark came through")
        equal(b.recv(1), b"!", "urgent byte")
        equal(receive_to_end(b, 2), ("FIN", 10 * KIB), "what follows it")


def _at_mark_within(s, within=5):
    import array
    import fcntl
    import termios
    at = array.array("i", [0])
    until = time.monotonic() + within
    siocatmark = getattr(termios, "SIOCATMARK", 0x8905)
    while time.monotonic() < until:
        fcntl.ioctl(s, siocatmark, at)
        if at[0]:
            return True
        time.sleep(0.01)
    return False


@test(each=EVERY_WAY)
def after_every_kind_of_end_no_socket_is_left(t):
    backend, s = begin(t)

    def close_both(a, b):
        a.close()
        b.close()

    def reset_both(a, b):
        reset(a)
        reset(b)

    def half_close_then_reset(a, b):
        half_close(a)
        end_of(b)
        reset(b)
        a.close()

    def reset_a_full_one(a, b):
        b.setblocking(False)
        try:
            while True:
                b.send(bytes(64 * KIB))
        except BlockingIOError:
            pass
        reset(a)
        b.close()
    for end in (close_both, reset_both, half_close_then_reset, reset_a_full_one):
        for n in range(2):
            for _ in range(5):
                end(*sides(*t.pair(s, backend))[n])
            equal(proc.count_becomes(s.pid, 1, "socket:"), 1, f"sockets left after {end.__name__}")
    equal(s.stats()["connections"]["open"], 0, "open")


if __name__ == "__main__":
    run(at_once=3)
