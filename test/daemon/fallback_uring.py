#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""io_uring that is not there: not built in, or refused by the kernel; or that has no memory."""
import select
import time

from kit import EACH_MODE, KIB, MIB, Skip, check, equal, exchange, receive, run, send, test, uring_is_built
from kit.strace import Attached, Strace

TARGET = "127.0.0.1:9"


@test()
def a_build_without_says_how_to_build_with_it_and_exits_with_2(t):
    if uring_is_built():
        raise Skip("built with io_uring")
    status, out, err = t.sluice("--mode=uring", "127.0.0.1:0", TARGET, ready=False, stats=None).result()
    equal((status, out, len(err)), (2, "", 1), "exit status, stdout, and lines on stderr")
    check("--mode=uring" in err[0] and "meson setup -Dliburing=enabled" in err[0], err[0])


def refused(t, error, call="io_uring_setup"):
    backend = t.backend()
    strace = Strace(t, f"{call}:error={error}", trace=call)
    s = t.forward(backend, "--mode=uring", "--workers=2", wrap=strace.wrap)
    equal(sum("io_uring unavailable" in line for line in s.err.lines), 1, f"lines about {error} in {s.err.lines}")
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
    for error in "EPERM", "ENOSYS", "EINVAL", "ENOMEM", "EMFILE":
        refused(t, error)
    if "uring" in EACH_MODE:
        refused(t, "ENOMEM", call="io_uring_register")


def need_uring():
    if "uring" not in EACH_MODE:
        raise Skip("built without io_uring, or io_uring refused")


@test()
def a_kernel_that_now_and_then_takes_no_request_is_asked_again(t):
    need_uring()
    backend = t.backend()
    strace = Strace(t, "io_uring_enter:error=EAGAIN:when=2+3", trace="io_uring_enter")
    s = t.forward(backend, "--mode=uring", wrap=strace.wrap)
    for n in range(4):
        exchange(*t.pair(s, backend), n, MIB)
    totals = s.stats_when(lambda totals: totals["bytes"]["delivered"] == 8 * MIB)
    equal(sum(totals["fallbacks"].values()), 0, "fallbacks")
    check(any("INJECTED" in line for line in strace.lines()), "no call has failed")


@test()
def a_kernel_that_takes_no_request_for_a_while_is_asked_a_hundred_times_a_second(t):
    need_uring()
    backend = t.backend()
    s = t.forward(backend, "--mode=uring", "--workers=1")
    client, server = t.pair(s, backend)
    exchange(client, server, 1, 100 * KIB)
    strace = Attached(t, s, "io_uring_enter:error=EAGAIN", trace="io_uring_enter")
    since = time.monotonic()
    send(client, 2, 1000)
    time.sleep(1)
    asked, took = s.stats()["eagain"]["no_memory"], time.monotonic() - since
    check(3 <= asked <= 150 * took, f"asked {asked} times in {took} s")
    check(not select.select([server], [], [], 0)[0], "a byte has gone by")
    strace.close()
    receive(server, 2, 1000)
    exchange(client, server, 3, 100 * KIB)


if __name__ == "__main__":
    run()
