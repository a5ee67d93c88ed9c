#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trouble is told without flooding, and whatever becomes of stdout and stderr does no harm."""
import fcntl
import os
import re
import signal
import subprocess
import time

from kit import (KIB, MIB, MODES, Job, Nobody, check, equal, exchange, half_close, proc, receive, receive_to_end,
                 reset, run, send, test, told, ways)
from kit.sluice import Lines

F_SETPIPE_SZ = 1031
GATE_S = 10  # a few lines in so many seconds


def small_pipe(t):
    """Both ends of a pipe that holds a page; nobody reads it yet."""
    r, w = os.pipe()
    fcntl.fcntl(w, F_SETPIPE_SZ, 4096)
    t.later(_close, r)
    return r, w


def _close(fd):
    try:
        os.close(fd)
    except OSError:
        pass


def listening_sluice(t, backend, *args, **kwargs):
    """One whose stderr is not read here: its port is chosen before."""
    spare = t.backend()
    host, port = spare.addr
    spare.close()
    s = t.sluice(*args, f"{host}:{port}", "%s:%d" % backend.addr, ready=False, **kwargs)
    s.addrs = [(host, port)]
    check(proc.wait_for(lambda: proc.listening(port)), "it does not listen")
    return s


def busy(t, s, backend, n=100):
    """@n connections one after the other, each with bytes both ways."""
    for i in range(n):
        client, server = t.pair(s, backend)
        exchange(client, server, i, 500)
        half_close(client)
        equal(receive_to_end(server, 0), ("FIN", 0), "end")
        server.close()
        client.close()


def refusals(s):
    """How many lines tell of one, of those that have been read by now."""
    return sum("cannot connect" in line for line in s.err.lines)


@test(each=MODES)
def the_same_trouble_many_times_is_a_few_lines_and_then_their_number(t):
    s = t.forward(t.keep(Nobody()))
    since = time.monotonic()
    for _ in range(200):
        equal(told(s), "RST", "what a client is told")
    s.stats_at_rest()
    if time.monotonic() - since < GATE_S - 2:
        check(proc.wait_for(lambda: refusals(s) == 5), f"lines about 200 refusals: {refusals(s)}, not 5")
    if t.way["mode"] != "splice":
        return  # once is enough for what takes so long
    time.sleep(max(0, since + GATE_S + 1 - time.monotonic()))
    told(s)
    m = s.err.find(r"cannot connect: .* \(and (\d+) more like it\)")
    check(m, s.err.lines[-3:])
    equal(int(m[1]), 195, "refusals that were held back")


@test(each=ways())
def a_stderr_that_nobody_reads_holds_nothing_up(t):
    backend = t.backend()
    r, w = small_pipe(t)
    s = listening_sluice(t, backend, "--log-level=debug", stderr=w)
    os.close(w)
    while not s.stats()["output"]["messages_dropped"]:
        busy(t, s, backend)
    dropped = s.stats_at_rest()["output"]["messages_dropped"]
    err = Lines(os.fdopen(os.dup(r), "rb"))
    check(err.find(r"^sluice: \d+ messages dropped$"), f"not told how many were dropped: {err.lines[-3:]}")
    busy(t, s, backend, 1)
    check(err.find("bytes up", len(err.lines) - 1), f"no message behind those that were dropped: {err.lines[-3:]}")
    totals = s.stop()
    told = [int(m[1]) for m in map(re.compile(r"^sluice: (\d+) messages dropped$").match, err.wait_end()) if m]
    equal(sum(told), dropped, "messages dropped, as told")
    equal(totals["output"]["messages_dropped"], dropped, "messages dropped, in the totals")


@test(each=ways(workers=(1,)))
def a_stderr_whose_reader_has_gone_holds_nothing_up_and_kills_nothing(t):
    backend = t.backend()
    r, w = small_pipe(t)
    s = listening_sluice(t, backend, "--log-level=debug", stderr=w)
    os.close(w)
    os.close(r)
    busy(t, s, backend)
    s.stop()


@test(each=ways(workers=(1,)))
def closed_standard_files_do_no_harm(t):
    backend = t.backend()
    for closed in ("2>&-", ">&- 2>&-", "<&- >&- 2>&-", "<&- 2>&-"):
        shell = ["sh", "-c", f'exec "$@" {closed}', "sh"]
        s = listening_sluice(t, backend, "--log-level=debug", wrap=shell)
        busy(t, s, backend, 20)
        client, server = t.pair(s, backend)
        jobs = [Job(send, client, 1, 4 * MIB), Job(send, server, 2, 4 * MIB)]
        receive(server, 1, MIB)
        s.signal(signal.SIGUSR1)
        receive(server, 1, 3 * MIB, MIB)
        receive(client, 2, 4 * MIB)
        for job in jobs:
            job.result()
        client.close()
        server.close()
        s.signal(signal.SIGTERM)
        equal(s.wait(), 0, f"exit status with {closed}")


@test(each=ways(workers=(1,)))
def peers_that_vanish_never_kill_it_by_a_signal(t):
    backend = t.backend()
    s = t.forward(backend)
    for n in range(60):
        client, server = t.pair(s, backend)
        a, b = (client, server) if n % 2 else (server, client)
        sender = Job(_send_anyway, a)
        b.recv(100)
        if n % 3:
            reset(b)
        else:
            b.close()
        sender.result()
    check(s.alive(), f"exit status {s.process.returncode}")
    with open(f"/proc/{s.pid}/status") as f:
        ignored = [int(line.split()[1], 16) for line in f if line.startswith("SigIgn:")][0]
    check(ignored & 1 << signal.SIGPIPE - 1, "SIGPIPE is not ignored")
    exchange(*t.pair(s, backend), 1, 1000)


def _send_anyway(s):
    try:
        for _ in range(100):
            s.sendall(bytes(64 * KIB))
    except OSError:
        pass


@test()
def totals_that_nobody_reads_do_not_keep_it_from_working_nor_from_ending(t):
    backend = t.backend()
    r, w = small_pipe(t)
    s = t.forward(backend, stdout=w)
    os.close(w)
    for _ in range(50):
        s.signal(signal.SIGUSR1)
        time.sleep(0.002)
    exchange(*t.pair(s, backend), 1, 1000)
    s.signal(signal.SIGTERM)
    s.signal(signal.SIGINT)
    equal(s.wait(), 0, "exit status")


@test()
def a_stdout_whose_reader_has_gone_kills_nothing(t):
    backend = t.backend()
    r, w = small_pipe(t)
    s = t.forward(backend, stdout=w)
    os.close(w)
    os.close(r)
    for _ in range(3):
        s.signal(signal.SIGUSR1)
        time.sleep(0.02)
    exchange(*t.pair(s, backend), 1, 1000)
    s.signal(signal.SIGTERM)
    s.signal(signal.SIGINT)
    equal(s.wait(), 0, "exit status")


@test()
def a_stderr_that_is_a_full_disk_or_a_file_does_no_harm(t):
    backend = t.backend()
    with open("/dev/full", "wb") as full:
        s = listening_sluice(t, backend, "--log-level=debug", stderr=full)
    busy(t, s, backend, 20)
    s.stop()
    path = t.folder() + "/log"
    with open(path, "wb") as f:
        s = listening_sluice(t, backend, "--log-level=info", stderr=f, stdout=subprocess.DEVNULL)
    busy(t, s, backend, 20)
    s.signal(signal.SIGTERM)
    equal(s.wait(), 0, "exit status")
    with open(path) as f:
        equal(sum("bytes up" in li for li in f), 20, "lines in the file")


if __name__ == "__main__":
    run(at_once=4)
