#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""No connection and no signal waits for stdout or stderr, whatever they are and whether or not they are read."""
import fcntl
import os
import pty
import re
import resource
import signal
import socket
import subprocess
import termios
import time
import tty

from kit import (KIB, MIB, Job, Skip, check, end_of, equal, exchange, half_close, proc, receive, receive_to_end, run,
                 send, test, ways)
from kit.sluice import Lines
from kit.strace import Strace

WORKERS = ways(modes=("auto",))
STOP, START = b"\x13", b"\x11"  # Ctrl-S, Ctrl-Q
LIMIT = 2 * KIB  # of a file


def close(fd):
    try:
        os.close(fd)
    except OSError:
        pass


def fill(fd):
    """Until it takes no byte more."""
    flags = fcntl.fcntl(fd, fcntl.F_GETFL)
    fcntl.fcntl(fd, fcntl.F_SETFL, flags | os.O_NONBLOCK)
    for size in 4096, 1:
        try:
            while os.write(fd, b"x" * size):
                pass
        except BlockingIOError:
            pass
    fcntl.fcntl(fd, fcntl.F_SETFL, flags)


def terminal(t):
    parent, end = pty.openpty()
    t.later(close, parent)
    t.later(close, end)
    return parent, end


def cooked_terminal(t):
    """Has room for less than a newline, which is two bytes there, but poll(2) may call it writable."""
    end = terminal(t)[1]
    fill(end)
    return end


def nonblocking_terminal(t):
    end = cooked_terminal(t)
    os.set_blocking(end, False)
    return end


def raw_terminal(t):
    end = terminal(t)[1]
    tty.setraw(end)
    fill(end)
    return end


def empty_terminal(t):
    return terminal(t)[1]


def empty_raw_terminal(t):
    end = terminal(t)[1]
    tty.setraw(end)
    return end


def stopped_terminal(t):
    parent, end = terminal(t)
    os.write(parent, STOP)
    return end


def suspended_terminal(t):
    end = terminal(t)[1]
    termios.tcflow(end, termios.TCOOFF)
    return end


def pipe(t):
    r, w = os.pipe()
    t.later(close, r)
    t.later(close, w)
    fill(w)
    return w


def fifo(t):
    path = t.folder() + "/fifo"
    os.mkfifo(path)
    fd = os.open(path, os.O_RDWR)
    t.later(close, fd)
    fill(fd)
    return fd


def stream_socket(t):
    a, b = (t.keep(s) for s in socket.socketpair())
    fill(a.fileno())
    t.later(b.fileno)  # it lives as long
    return a.fileno()


def datagram_socket(t):
    a, b = (t.keep(s) for s in socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
    fill(a.fileno())
    t.later(b.fileno)
    return a.fileno()


def full_device(t):
    fd = os.open("/dev/full", os.O_WRONLY)
    t.later(close, fd)
    return fd


BLOCKING = [cooked_terminal, nonblocking_terminal, raw_terminal, stopped_terminal, suspended_terminal, pipe, fifo,
            stream_socket, datagram_socket]
KINDS = BLOCKING + [full_device]


def each(kinds):
    """Declares a test for each of these kinds of output, with every number of workers."""
    def declare(fn):
        for kind in kinds:
            def one(t, kind=kind):
                fn(t, kind(t))
            one.__name__ = f"{fn.__name__}, {kind.__name__}"
            test(each=WORKERS)(one)
        return fn
    return declare


def start(t, backend, *args, **kwargs):
    """One whose stderr is not read here: its port is chosen before."""
    spare = t.backend()
    host, port = spare.addr
    spare.close()
    s = t.sluice(*args, "--drain-timeout=100ms", f"{host}:{port}", "%s:%d" % backend.addr, ready=False, **kwargs)
    s.addrs = [(host, port)]
    check(proc.wait_for(lambda: proc.listens(s.pid, port)), "it does not listen")
    return s


class Old:
    """A connection that was there before, with a stream each way that goes on."""

    def __init__(self, t, s, backend):
        self.client, self.server = t.pair(s, backend)
        self.at = 0

    def goes_on(self, size=MIB):
        for a, b, stream in (self.client, self.server, 1), (self.server, self.client, 2):
            job = Job(send, a, stream, size, self.at)
            receive(b, stream, size, self.at)
            job.result()
        self.at += size


def serves(t, s, backend, n=10):
    """Connections one after the other, each with bytes both ways and a few messages."""
    for i in range(n):
        client, server = t.pair(s, backend)
        exchange(client, server, i, 500)
        half_close(client)
        equal(receive_to_end(server, 0), ("FIN", 0), "end")
        server.close()
        equal(end_of(client), "FIN", "end")
        client.close()


def status_of(pid, key):
    with open(f"/proc/{pid}/status") as f:
        return [line.split()[1] for line in f if line.startswith(key + ":")][0]


def ends(s, what):
    s.signal(signal.SIGTERM)
    equal(s.wait(), 0, f"exit status {what}")


@each(KINDS)
def a_stderr_that_takes_nothing_keeps_no_connection_and_no_signal_waiting(t, fd):
    backend = t.backend()
    s = start(t, backend, "--log-level=debug", stderr=fd)
    old = Old(t, s, backend)
    old.goes_on()
    for _ in range(3):
        serves(t, s, backend)
        equal(s.stats()["connections"]["open"] > 0, True, "totals by SIGUSR1")
        old.goes_on()
    ends(s, "after SIGTERM")


@each(BLOCKING)
def a_stdout_that_takes_nothing_keeps_no_connection_waiting_and_its_reports_are_dropped_in_time(t, fd):
    backend = t.backend()
    s = t.forward(backend, "--drain-timeout=100ms", stdout=fd)
    old = Old(t, s, backend)
    for n in range(3):
        s.signal(signal.SIGUSR1)
        old.goes_on()
        serves(t, s, backend, 3)
    check(s.err.find(r"warning: statistics dropped: stdout would block \(\d reports?\)"), s.err.lines)
    old.goes_on()
    ends(s, "after SIGTERM")
    check(re.search("stopped: ", "\n".join(s.err.wait_end())), s.err.lines)


@each(KINDS)
def a_terminal_for_both_that_is_not_read_keeps_no_connection_and_no_signal_waiting(t, fd):
    backend = t.backend()
    s = start(t, backend, "--log-level=info", stdout=fd, stderr=fd)
    old = Old(t, s, backend)
    for _ in range(3):
        s.signal(signal.SIGUSR1)
        serves(t, s, backend)
        old.goes_on()
    ends(s, "after SIGTERM")


@each([empty_terminal, empty_raw_terminal])
def a_terminal_that_fills_up_while_it_runs_keeps_no_connection_waiting(t, end):
    backend = t.backend()
    s = start(t, backend, "--log-level=debug", stdout=end, stderr=end)
    old = Old(t, s, backend)
    for _ in range(5):
        serves(t, s, backend, 40)
        s.signal(signal.SIGUSR1)
        old.goes_on()
    ends(s, "after SIGTERM")


@test(each=WORKERS)
def what_was_written_to_a_stopped_terminal_arrives_in_order_once_it_goes_on(t):
    backend = t.backend()
    parent, end = terminal(t)
    s = start(t, backend, "--log-level=info", stderr=end)
    err = Lines(os.fdopen(os.dup(parent), "rb", 0))
    check(err.find("ready: "), err.lines)
    os.write(parent, STOP)
    names = []
    for i in range(100):
        client, server = t.pair(s, backend)
        names.append("%s:%d" % client.getsockname())
        client.close()
        server.close()
        s.stats_at_rest()
    before = len(err.lines)
    os.write(parent, START)
    check(err.find(re.escape(names[-1])), f"not all has come: {err.lines[-3:]}")
    seen = [m[1] for m in (re.match(r"sluice: (\S+) -> .* bytes up", line) for line in err.lines) if m]
    equal(seen, names, f"connections in the log, of which {before} lines came before it was stopped")
    equal(s.stop()["output"], {"messages_dropped": 0, "reports_dropped": 0}, "dropped")


@test()
def a_stderr_with_too_little_room_is_not_tried_all_the_time(t):
    backend = t.backend()
    s = start(t, backend, "--log-level=debug", stderr=nonblocking_terminal(t))
    serves(t, s, backend)
    s.stats_at_rest()
    before = proc.cpu(s.pid)
    time.sleep(1)
    check(proc.cpu(s.pid) - before < 0.3, f"{proc.cpu(s.pid) - before:.2f} s of cpu in a second")


@test(each=WORKERS)
def a_file_system_that_hangs_keeps_no_connection_and_no_signal_waiting(t):
    path = t.folder() + "/log"
    backend = t.backend()
    hang = Strace(t, "write:delay_enter=100000000:when=4+", trace="write")
    with open(path, "wb") as f:
        s = start(t, backend, "--log-level=debug", stderr=f, wrap=hang.wrap + ["-P", path])
    old = Old(t, s, backend)
    for _ in range(3):
        serves(t, s, backend)
        s.signal(signal.SIGUSR1)
        old.goes_on()
    tracer = int(status_of(s.pid, "TracerPid"))
    s.signal(signal.SIGTERM)
    check(proc.wait_for(lambda: status_of(s.pid, "State") == "Z"), "its main thread has not ended after SIGTERM")
    os.kill(tracer, signal.SIGKILL)  # which keeps the thread in write(2), as a kernel may that waits for a disk
    equal(s.wait(), 0, "exit status after SIGTERM")
    with open(path) as f:
        check(0 < len(f.readlines()) < 5, "it was not held up")


def grows_to_its_limit(t, s, backend, path, make_room):
    """A log in a file with no room for all of it: what is missing is told where it is missing."""
    old = Old(t, s, backend)
    while not s.stats()["output"]["messages_dropped"]:
        serves(t, s, backend)
    old.goes_on()
    dropped = s.stats_when(lambda totals: totals["connections"]["open"] == 1)["output"]["messages_dropped"]
    make_room()
    s.stats()
    serves(t, s, backend, 1)
    lines = []

    def told():
        with open(path) as f:
            lines[:] = f.read().splitlines()
        return any("messages dropped" in line for line in lines)
    check(proc.wait_for(told), f"not told how many were dropped: {lines}")
    m = [re.match(r"^sluice: (\d+) messages dropped$", line) for line in lines]
    equal([int(x[1]) for x in m if x], [dropped], "messages dropped, as told")
    equal([line for line in lines if line and not line.startswith("sluice: ")], [], "lines that are parts of some")
    old.goes_on()
    ends(s, "after SIGTERM")


@test(each=WORKERS)
def a_log_file_at_its_size_limit_does_not_end_it(t):
    path = t.folder() + "/log"
    backend = t.backend()
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    t.later(close, fd)
    s = start(t, backend, "--log-level=debug", stderr=fd, leaks=False, limits={resource.RLIMIT_FSIZE: LIMIT})
    grows_to_its_limit(t, s, backend, path, lambda: os.truncate(path, 0))


@test(each=WORKERS)
def a_log_on_a_full_disk_goes_on_when_there_is_room(t):
    if os.geteuid() != 0:
        raise Skip("only root can mount a small file system")
    folder = t.folder()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "sluice-test", folder], check=False).returncode:
        raise Skip("no file system can be mounted here")
    t.later(subprocess.run, ["umount", "-l", folder])
    path = folder + "/log"
    backend = t.backend()
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    t.later(close, fd)
    s = start(t, backend, "--log-level=debug", stderr=fd)
    grows_to_its_limit(t, s, backend, path, lambda: os.truncate(path, 0))


@test()
def closed_descriptors_do_not_become_those_of_connections(t):
    backend = t.backend()
    for closed in ("2>&-", ">&- 2>&-", "<&- >&- 2>&-"):
        s = start(t, backend, "--log-level=debug", wrap=["sh", "-c", f'exec "$@" {closed}', "sh"])
        there = proc.descriptors(s.pid)
        for word in closed.split():
            n = {"<": 0, ">": 1}.get(word[0], 2)
            equal(there.get(n), "/", f"descriptor {n} with {closed}")
        Old(t, s, backend).goes_on()
        serves(t, s, backend)
        s.signal(signal.SIGUSR1)
        ends(s, f"with {closed}")


@test()
def what_is_wrong_at_the_start_is_said_whole_and_never_keeps_it_from_ending(t):
    status, _, err = t.sluice("--no-such-option", ready=False).result()
    check(status == 2 and len(err) == 1 and "--no-such-option" in err[0], f"exit {status}, {err}")
    for kind in KINDS:
        s = t.sluice("--no-such-option", ready=False, stderr=kind(t))
        equal(s.wait(), 2, f"exit status with {kind.__name__}")


if __name__ == "__main__":
    run(at_once=6)
