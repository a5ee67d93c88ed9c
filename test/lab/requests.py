#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""sluice-load rr: how many requests are under way, what is timed, what is wrong is noticed."""
import collections
import contextlib
import select
import socket
import struct
import time

from driver import Load, Served

from kit import MIB, MODES, Job, Nobody, Reader, check, equal, half_close, run, stamp, test  # found by driver
from kit.strace import need_strace

HELLO = struct.Struct("=IBBHQ")  # struct hello of tools/load/wire.h
ECHO = 3
SIZE = 32
PATIENCE_S = 0.05  # of who makes sure that nothing comes


class Target:
    """The other end of one connection, by hand."""

    def __init__(self, t, backend):
        self.s = t.keep(backend.accept())
        _, kind, _, self.stream, count = HELLO.unpack(self._read(HELLO.size))
        equal((kind, count), (ECHO, 0), "what the hello asks for")
        self.got = 0

    def _read(self, n):
        data = b""
        while len(data) < n:
            more = self.s.recv(n - len(data))
            check(more, f"FIN after {len(data)} of {n} bytes")
            data += more
        return data

    def requests(self, n, size=SIZE):
        self.got += n * size
        return self._read(n * size)

    def silence(self, what):
        if select.select([self.s], [], [], PATIENCE_S)[0]:
            check(False, f"{what}: {len(self.s.recv(MIB))} bytes more")

    def say(self, data):
        self.s.sendall(data)

    def echo(self):
        """To the client's FIN."""
        while data := self.s.recv(MIB):
            self.got += len(data)
            self.say(data)


def rr(t, backend, *args):
    return Load(t, "rr", "%s:%d" % backend.addr, *args)


@test(each=({"depth": 1}, {"depth": 2}, {"depth": 16}))
def so_many_requests_are_under_way_and_no_more(t):
    depth, size = t.way["depth"], 33
    backend = t.backend()
    more = ["--pipeline", depth] if depth > 1 else []
    client = rr(t, backend, "--seconds", 2, "--size", size, *more)
    target = Target(t, backend)
    held = target.requests(depth, size)
    target.silence(f"with {depth} under way")
    for answers in sorted({1, max(1, depth // 2), depth}):
        target.say(held[:answers * size])
        held = held[answers * size:] + target.requests(answers, size)
        target.silence(f"after {answers} answers of {depth}")
    target.say(held)
    target.echo()
    half_close(target.s)
    got = client.well()
    equal((got["pipeline"], got["size"], got["errors"]), (depth, size, 0), "what it says of itself")
    # The first so many were written before the clock had started.
    equal(got["transactions"] * size, target.got - depth * size, "bytes of answers that count")


@test()
def what_has_begun_when_the_time_is_over_is_answered_and_no_more(t):
    backend = t.backend()
    # More than the sockets hold: the time is over in the middle of a request.
    client = rr(t, backend, "--seconds", 0.2, "--pipeline", 64, "--size", MIB)
    target = Target(t, backend)
    target.say(target.requests(1, MIB))
    time.sleep(0.5)
    target.echo()
    half_close(target.s)
    got = client.well()
    check(not target.got % MIB and target.got < 32 * MIB, f"{target.got} bytes were asked: {got}")


def answer_later(s, size, delay, depth):
    """Answers each request @delay seconds after it came, and the first ones not all at once."""
    waiting, held, last = collections.deque(), b"", 0
    while True:
        wait = max(0, waiting[0][0] - time.monotonic()) if waiting else None
        if select.select([s], [], [], wait)[0]:
            data = s.recv(MIB)
            if not data:
                half_close(s)
                return
            held += data
            while len(held) >= size:
                last = max(time.monotonic() + delay, last + delay / depth)
                waiting.append((last, held[:size]))
                held = held[size:]
        while waiting and waiting[0][0] <= time.monotonic():
            s.sendall(waiting.popleft()[1])


@test()
def each_request_is_timed_from_when_it_was_written(t):
    delay, depth = 0.04, 4
    backend = t.backend()
    client = rr(t, backend, "--seconds", 1, "--pipeline", depth)
    work = Job(answer_later, Target(t, backend).s, SIZE, delay, depth)
    got = client.well()
    work.result()
    check(got["transactions"] > 10 and got["over_35ms"] == got["transactions"],
          f"none took less than {delay} s: {got}")
    check(1 <= got["p50_us"] / 1e6 / delay < 2, f"half took less than two delays: {got}")
    check(got["tps"] * delay > 1.5, f"they did not wait for each other: {got}")


WRONG = {
    "a byte is another": (lambda a: a[:65] + bytes([a[65] ^ 1]) + a[66:], "garbled: bytes 65 to 71 of"),
    "two are swapped": (lambda a: a[:SIZE] + a[2 * SIZE:3 * SIZE] + a[SIZE:2 * SIZE] + a[3 * SIZE:],
                        f"reordered: at byte {SIZE} of"),
    "one is missing": (lambda a: a[:SIZE] + a[2 * SIZE:], f"lost: at byte {SIZE} of"),
    "one comes twice": (lambda a: a[:SIZE] + a, f"repeated: at byte {SIZE} of"),
    "FIN after two": (lambda a: a[:2 * SIZE], "waiting for an answer: the server has said FIN"),
}


@test(each=[{"wrong": what} for what in WRONG])
def a_wrong_answer_is_noticed(t):
    change, words = WRONG[t.way["wrong"]]
    backend = t.backend()
    client = rr(t, backend, "--seconds", 5, "--pipeline", 4)
    target = Target(t, backend)
    target.say(change(target.requests(4)))
    with contextlib.suppress(OSError):  # the client may have gone
        half_close(target.s)
    status, got, err = client.result()
    equal((status, got["errors"]), (1, 1), f"exit status, and errors: {err}")
    check(words in err and err.count("\n") == 1, err)


@test()
def an_answer_to_somebody_else_is_noticed(t):
    backend = t.backend()
    client = rr(t, backend, "--seconds", 5, "--pipeline", 4, "-N", 2)
    one, other = Target(t, backend), Target(t, backend)
    one.requests(4)
    one.say(other.requests(4))
    status, got, err = client.result()
    equal((status, got["errors"]), (1, 1), f"exit status, and errors: {err}")
    words = f"foreign: byte 0 of stream {one.stream} is byte 0 of stream {other.stream}"
    check(words in err, err)


def hello_of(t, *args):
    """A client of the load that checks. Return: it, its socket, its hello."""
    backend = t.backend()
    client = Load(t, *args[:1], "%s:%d" % backend.addr, "--check", "--seconds", 0.2, *args[1:])
    s = t.keep(backend.accept())
    return client, s, HELLO.unpack(s.recv(HELLO.size, socket.MSG_WAITALL))


@test()
def what_the_load_stamps_is_right_to_the_tests(t):
    _, s, (_, _, stamped, stream, _) = hello_of(t, "bulk")
    reader = Reader(stream)
    while data := s.recv(70001):
        reader.feed(data)
    check(stamped and reader.got > MIB, f"stamped: {stamped}, bytes: {reader.got}")


@test()
def what_the_tests_stamp_is_right_to_the_load(t):
    client, s, (_, _, stamped, stream, _) = hello_of(t, "bulk", "--reverse")
    said = 0
    while not select.select([s], [], [], 0)[0]:
        s.sendall(stamp(stream, said, said % 70001 + 1))
        said += said % 70001 + 1
    half_close(s)
    equal((stamped, client.well()["checked"]), (1, said), "stamped, and bytes that were checked")


@test()
def an_answer_before_its_request_is_noticed(t):
    backend = t.backend()
    # More than the sockets hold, so that most of it is not yet sent when the answers come.
    client = rr(t, backend, "--seconds", 5, "--pipeline", 64, "--size", MIB)
    target = Target(t, backend)
    with contextlib.suppress(OSError):
        for first in range(0, 64 * MIB, MIB):
            target.say(stamp(target.stream, first, MIB))
    status, got, err = client.result()
    equal((status, got["errors"]), (1, 1), f"exit status, and errors: {err}")
    check("waiting for an answer: Protocol error" in err, err)


@test()
def what_comes_behind_the_last_answer_is_noticed(t):
    backend = t.backend()
    client = rr(t, backend, "--seconds", 0.2, "--pipeline", 4)
    target = Target(t, backend)
    target.echo()
    target.say(stamp(target.stream, target.got, 8))
    status, got, err = client.result()
    equal((status, got["errors"]), (1, 1), f"exit status, and errors: {err}")
    check("waiting for the end: Protocol error" in err, err)


@test(each=MODES)
def every_answer_comes_through_a_forwarder(t):
    server = Served(t)
    s = t.forward(server.where)
    for size in (1, SIZE, 20000):
        got = Load(t, "rr", "%s:%d" % s.addr, "-N", 3, "--pipeline", 64, "--size", size,
                   "--seconds", 0.4).well()
        check(got["transactions"] > 0 and got["pipeline"] == 64 and not got["errors"], got)
    counted = server.end()
    equal((counted["bytes_out"], counted["errors"]), (counted["bytes_in"], 0), "sent, and errors")


@test(each=({"depth": 1}, {"depth": 16}))
def nobody_waits_for_a_connection_whose_answers_are_always_there(t):
    need_strace()
    server = Served(t)
    # Each read comes 5 ms late, and so there is always an answer.
    slow = ["strace", "-D", "-o", "/dev/null", "-e", "trace=recvfrom",
            "-e", "inject=recvfrom:delay_enter=5000"]
    Load(t, "rr", server.where, "-N", 3, "--pipeline", t.way["depth"], "--seconds", 0.2,
         "--timeout", 6, wrap=slow).well()
    server.end()


@test()
def connections_that_go_and_connections_that_rest_have_one_under_way(t):
    server = Served(t)
    got = Load(t, "crr", server.where, "-K", 4, "--count", 50).well()
    equal((got["transactions"], got["pipeline"], got["errors"]), (50, 1, 0), "of crr")
    for more in ([], ["--unread"]):
        holder = Load(t, "hold", server.where, "-N", 5, *more)
        equal(holder.process.stdout.readline(), '{"held":5}\n', "what hold says")
        holder.well()


@test()
def a_depth_that_is_none_is_said_in_one_line(t):
    def said(*args):
        return Load(t, *args).result()
    rr_of_a_second = ("rr", "127.0.0.1:9", "--seconds", 1, "--pipeline")
    right = "should be a number from 1 to 1024, such as 32 or 1K"
    for value in ("0", "-1", "x", "", "1025", "2K", "1.5", "16x"):
        equal(said(*rr_of_a_second, value),
              (2, None, f"sluice-load: --pipeline {value}: {right}\n"), f"--pipeline {value}")
    equal(said(*rr_of_a_second), (2, None, "sluice-load: --pipeline: needs a value\n"), "no value")
    for name in ("serve", "bulk", "crr", "hold"):
        equal(said(name, "127.0.0.1:9", "--pipeline", 4),
              (2, None, f"sluice-load: --pipeline: is no option of {name}; see --help\n"), name)
    nobody = t.keep(Nobody())
    status, _, err = said("rr", "%s:%d" % nobody.addr, "--seconds", 1, "--pipeline", "1K")
    check(status == 1 and "Connection refused" in err, f"1K is a depth: {err}")
    p = Load(t, "--help").process
    check("--pipeline DEPTH" in p.communicate()[0] and not p.returncode, "--help")


if __name__ == "__main__":
    run()
