#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Thousands of connections leave nothing behind."""
import socket

from kit import KIB, Echo, check, equal, proc, run, stamp, test, ways

WARM_UP, MORE, AT_ONCE = 100, 5000, 20
SAID = stamp(1, 0, 3 * KIB)


def one_connection(addr):
    s = socket.create_connection(addr, 10)
    s.sendall(SAID)
    s.shutdown(socket.SHUT_WR)
    got = b""
    while True:
        data = s.recv(1 << 16)
        if not data:
            break
        got += data
    s.close()
    if got != SAID:
        raise AssertionError(f"{len(got)} bytes of {len(SAID)} came back")


def many(addr, n):
    """@n connections, some of them at the same time, each with bytes both ways."""
    for start in range(0, n, AT_ONCE):
        group = [socket.create_connection(addr, 10) for _ in range(AT_ONCE - 1)]
        one_connection(addr)
        for k, s in enumerate(group):
            if k % 5:
                s.sendall(SAID)
                s.shutdown(socket.SHUT_WR)
            elif k % 2:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # a reset
                s.close()
        for k, s in enumerate(group):
            if k % 5:
                left = len(SAID)
                while left:
                    data = s.recv(1 << 16)
                    if not data:
                        raise AssertionError(f"{left} bytes did not come back")
                    left -= len(data)
            s.close()


@test(each=ways(workers=(2,)) + [{"mode": "splice", "workers": 1}])
def after_5000_more_connections_it_has_what_it_had(t):
    backend = t.keep(Echo())
    s = t.forward(backend)
    many(s.addr, WARM_UP)
    before = s.stats_at_rest()
    sockets, others = proc.count(s.pid, "socket:"), proc.count(s.pid) - proc.count(s.pid, "pipe:")
    memory = proc.rss(s.pid)
    many(s.addr, MORE)
    after = s.stats_at_rest()
    equal(after["connections"]["accepted"] - before["connections"]["accepted"], MORE, "connections")
    equal(proc.count(s.pid, "socket:"), sockets, "sockets")
    equal(proc.count(s.pid) - proc.count(s.pid, "pipe:"), others, "descriptors that are no pipes")
    now = after["pipes"]["now"]
    check(proc.count(s.pid, "pipe:") <= 2 * now + 2, f"{proc.count(s.pid, 'pipe:')} ends of pipes; the totals say {now} pipes")
    equal((after["pipes"]["out"], after["buffers"]["now"]), (0, 0), "pipes and buffers out")
    if not proc.sanitized(t.binary):
        grown = proc.rss(s.pid) - memory
        check(grown <= 1024 * KIB, f"{grown // KIB} KiB more memory after {MORE} more connections")


if __name__ == "__main__":
    run()
