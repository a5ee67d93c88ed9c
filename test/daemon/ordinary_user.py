#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""As an ordinary user, whose pipes the kernel counts: the 601st connection is as fast as the first."""
import os
import resource
import select
import time

from kit import KIB, MIB, Job, Skip, check, equal, exchange, proc, run, test
from kit.user import largest_pipe, pipe_limits, spare_user

HELD = 600
BULK = 96 * MIB
LEAST = 0.8       # of the first one's throughput
TRIES = 8
STALLED = MIB + 256 * KIB  # offered to each reader that does not read: more than a pipe holds
# Small segments keep the kernel's own queues short: what is queued is with the forwarder.
LITTLE = dict(rcvbuf=4 * KIB, maxseg=1000)


def start(t, number=0):
    """A forwarder as an ordinary user: as somebody else, if we are root."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 4 * HELD + 200:
        raise Skip(f"needs {4 * HELD + 200} descriptors, may have {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    user = None
    if os.geteuid() == 0:
        user = spare_user() + number * 100000
    backend = t.backend()
    return backend, t.forward(backend, "--mode=splice", user=user)


def bulk_rate(client, server):
    """Bytes a second of one long stream; what they are is others' business."""
    block = bytes(MIB)
    room = bytearray(MIB)

    def read():
        left = BULK
        while left:
            left -= client.recv_into(room, min(left, MIB)) or left
    reader = Job(read)
    since = time.monotonic()
    for _ in range(BULK // MIB):
        server.sendall(block)
    reader.result()
    return BULK / (time.monotonic() - since)


def as_fast_as_the_first(t, s, backend):
    """Compares a new connection with the first of another forwarder, as that user has it.

    In turn, and several times if need be: a machine may be busy.
    """
    other_backend, other = start(t, 1)
    first = t.pair(other, other_backend)
    firsts, rates = [], []
    for _ in range(TRIES):
        firsts.append(bulk_rate(*first))
        client, server = t.pair(s, backend)
        rates.append(bulk_rate(client, server))
        client.close()
        server.close()
        if max(rates) >= LEAST * sorted(firsts)[len(firsts) // 2]:
            return
    check(False, f"MiB/s of a first connection {[round(r / MIB) for r in firsts]}, "
                 f"of this one {[round(r / MIB) for r in rates]}")


def room_for_others(s):
    """The user's other programs must still get a pipe as large as any."""
    if s.user is not None:
        most = pipe_limits()[1]
        equal(largest_pipe(s.user), most, "bytes of a pipe that another program of the user gets")


def no_small_pipe(s):
    if os.geteuid() == 0 or proc.count(s.pid):
        sizes = proc.pipe_sizes(s.pid)
        check(sizes and min(sizes.values()) >= 64 * KIB, f"pipes of {sorted(set(sizes.values()))} bytes")


@test()
def after_600_used_connections_the_next_is_as_fast_as_the_first(t):
    backend, s = start(t)
    held = t.pairs(s, backend, HELD)
    for n, (client, server) in enumerate(held):
        exchange(client, server, n, 2000)
    before = s.stats()
    as_fast_as_the_first(t, s, backend)
    after = s.stats_when(lambda totals: totals["connections"]["open"] == HELD)
    moved = {k: after["bytes"][k] - before["bytes"][k] for k in ("by_pipe", "by_buffer")}
    equal(moved["by_buffer"], 0, "bytes of the last one by buffer")
    check(moved["by_pipe"] >= BULK, moved)
    equal(sum(after["fallbacks"].values()), 0, f"fallbacks {after['fallbacks']}")
    no_small_pipe(s)


@test()
def with_600_stalled_readers_the_next_is_as_fast_as_the_first(t):
    backend, s = start(t)
    held = t.pairs(s, backend, HELD, **LITTLE)
    queued = stall(held)
    before = settled(s)
    with_us = before["bytes"]["read"] - before["bytes"]["delivered"]
    check(min(queued) > MIB, f"only {min(queued)} bytes are under way to one of the readers")
    check(with_us > HELD * 8 * KIB, f"only {with_us} bytes are held for {HELD} readers")
    as_fast_as_the_first(t, s, backend)
    after = s.stats_when(lambda totals: totals["connections"]["open"] == HELD)
    moved = {k: after["bytes"][k] - before["bytes"][k] for k in ("by_pipe", "by_buffer")}
    check(sum(moved.values()) >= BULK, moved)
    room_for_others(s)
    check(after["bytes"]["spilled"] > 0 or after["fallbacks"]["pipe_share"] > 0, "no reader was stalled long enough")
    no_small_pipe(s)


def settled(s):
    """The totals once it reads no more."""
    before = s.stats()
    while True:
        time.sleep(0.1)
        now = s.stats()
        if now["bytes"]["read"] == before["bytes"]["read"]:
            return now
        before = now


def stall(pairs):
    """Offers each more than a pipe holds, until nothing moves. Return: how much each took."""
    block = bytes(256 * KIB)
    left = {server.fileno(): [server, STALLED] for _, server in pairs}
    poll = select.poll()
    for fd, (server, _) in left.items():
        server.setblocking(False)
        poll.register(fd, select.POLLOUT)
    quiet = 0
    while left and quiet < 3:
        ready = poll.poll(150)
        quiet = 0 if ready else quiet + 1
        for fd, _ in ready:
            server, n = left[fd]
            try:
                left[fd][1] -= server.send(block[:min(n, len(block))])
            except BlockingIOError:
                pass
            if not left[fd][1]:
                poll.unregister(fd)
                del left[fd]
    return [STALLED] * (len(pairs) - len(left)) + [STALLED - n for _, n in left.values()]


if __name__ == "__main__":
    run()
