#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""io_uring that is not there: not built in, or refused by the kernel."""
from kit import EACH_MODE, MIB, Skip, check, equal, exchange, run, test, uring_is_built
from kit.strace import Strace

TARGET = "127.0.0.1:9"


@test()
def a_build_without_says_how_to_build_with_it_and_exits_with_2(t):
    if uring_is_built():
        raise Skip("built with io_uring")
    status, out, err = t.sluice("--mode=uring", "127.0.0.1:0", TARGET, ready=False, stats=None).result()
    equal((status, out, len(err)), (2, "", 1), "exit status, stdout, and lines on stderr")
    check("--mode=uring" in err[0] and "meson setup -Dliburing=enabled" in err[0], err[0])


def refused(t, error, receive):
    backend = t.backend()
    strace = Strace(t, f"io_uring_setup:error={error}", trace="io_uring_setup")
    s = t.forward(backend, "--mode=uring", f"--uring-receive={receive}", "--workers=2", wrap=strace.wrap)
    equal(sum("io_uring refused" in line for line in s.err.lines), 1, f"lines about {error} in {s.err.lines}")
    check(s.err.find("ready: 2 workers, copy, "), "it does not say that it copies")
    for n in range(3):
        exchange(*t.pair(s, backend), n, MIB)
    totals = s.stats_when(lambda totals: totals["bytes"]["delivered"] == 6 * MIB)
    equal({k: n for k, n in totals["fallbacks"].items() if n}, {"uring": 3}, "fallbacks")
    equal(totals["bytes"]["by_buffer"], 6 * MIB, "by buffer")


@test()
def a_kernel_that_refuses_is_said_once_and_counted_and_the_bytes_are_copied(t):
    if not uring_is_built():
        raise Skip("built without io_uring")
    for error in "EPERM", "ENOSYS", "EINVAL":
        refused(t, error, "edge")
    refused(t, "EPERM", "multishot")


@test()
def by_either_receive_bytes_go_both_ways(t):
    if "uring" not in EACH_MODE:
        raise Skip("built without io_uring, or io_uring refused")
    for receive in "edge", "multishot":
        backend = t.backend()
        s = t.forward(backend, "--mode=uring", f"--uring-receive={receive}")
        for n in range(10):
            exchange(*t.pair(s, backend), n, 1 + n * MIB // 5)
        equal(sum(s.stats()["fallbacks"].values()), 0, "fallbacks")


if __name__ == "__main__":
    run()
