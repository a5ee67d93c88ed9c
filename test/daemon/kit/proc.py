# SPDX-License-Identifier: MIT
"""What /proc says about a process."""
import ctypes
import errno
import fcntl
import itertools
import os
import socket
import time

PATIENCE_S = 20  # for what must come: however busy the machine is. What must come soon is timed

F_GETPIPE_SZ = 1032
_PIDFD_GETFD = 438  # on every architecture
_libc = ctypes.CDLL(None, use_errno=True)
_TICKS = os.sysconf("SC_CLK_TCK")


def descriptors(pid):
    """{number: what it is, as "socket:[1]"}"""
    found = {}
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            found[int(fd)] = os.readlink(f"/proc/{pid}/fd/{fd}")
        except FileNotFoundError:
            pass
    return found


def count(pid, kind=""):
    """How many descriptors: of "socket:", of "pipe:", or of any kind."""
    return sum(1 for what in descriptors(pid).values() if what.startswith(kind))


def count_becomes(pid, n, kind="", within=PATIENCE_S):
    """Waits until it has @n descriptors. Return: how many it has."""
    until = time.monotonic() + within
    while True:
        now = count(pid, kind)
        if now == n or time.monotonic() > until:
            return now
        time.sleep(0.005)


def sockets(pid):
    """Its TCP sockets as our own: to look at, since what is done to them is done to its own. The caller closes them."""
    found = []
    process = os.pidfd_open(pid)
    try:
        for fd, what in descriptors(pid).items():
            if what.startswith("socket:"):
                ours = _libc.syscall(_PIDFD_GETFD, process, fd, 0)
                if ours < 0 and ctypes.get_errno() == errno.EBADF:
                    continue  # closed since
                if ours < 0:
                    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
                found.append(socket.socket(fileno=ours))
    finally:
        os.close(process)
    return found


def pipe_sizes(pid):
    """{inode text: bytes} of every pipe it holds both ends of."""
    ends = {}
    for fd, what in descriptors(pid).items():
        if what.startswith("pipe:"):
            ends.setdefault(what, []).append(fd)
    sizes = {}
    for what, fds in ends.items():
        if len(fds) < 2:
            continue  # one end: its stdout or stderr
        try:
            fd = os.open(f"/proc/{pid}/fd/{fds[0]}", os.O_RDONLY | os.O_NONBLOCK)
        except FileNotFoundError:
            continue
        try:
            sizes[what] = fcntl.fcntl(fd, F_GETPIPE_SZ)
        finally:
            os.close(fd)
    return sizes


def _status(pid, key):
    with open(f"/proc/{pid}/status") as f:
        for line in f:
            if line.startswith(key + ":"):
                return line.split()[1]
    raise KeyError(key)


def rss(pid):
    """Bytes resident that are its own: not of files."""
    return int(_status(pid, "RssAnon")) * 1024


def cpu(pid):
    """Seconds of cpu so far."""
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def wakeups(pid):
    """How often its threads have gone to sleep so far."""
    return sum(int(_status(f"{pid}/task/{tid}", "voluntary_ctxt_switches")) for tid in os.listdir(f"/proc/{pid}/task"))


def awake(pid, seconds):
    """Of so many seconds: the share in which a thread of it wanted the cpu, whether it got it or not."""
    until, looks, seen = time.monotonic() + seconds, 0, 0
    while time.monotonic() < until:
        time.sleep(0.01)
        looks += 1
        for tid in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{tid}/stat") as f:
                if f.read().rsplit(")", 1)[1].split()[0] == "R":
                    seen += 1
                    break
    return seen / looks


def sleeps(pid):
    """Whether every thread of it waits for something to happen."""
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/stat") as f:
            if f.read().rsplit(")", 1)[1].split()[0] != "S":
                return False
    return True


def watched(pid):
    """For each epoll set: how many descriptors are in it."""
    sets = []
    for fd, what in descriptors(pid).items():
        if what == "anon_inode:[eventpoll]":
            with open(f"/proc/{pid}/fdinfo/{fd}") as f:
                sets.append(sum(line.startswith("tfd:") for line in f))
    return sorted(sets)


def _listeners(port, pid):
    """Sockets that listen at @port in that process's network namespace, as "socket:[1]"."""
    found = set()
    for name in (f"/proc/{pid}/net/tcp", f"/proc/{pid}/net/tcp6"):
        try:
            with open(name) as f:
                next(f)
                # They stand first; behind them may be tens of thousands in TIME_WAIT.
                rows = list(itertools.takewhile(lambda r: r[3] == "0A", map(str.split, f)))
        except FileNotFoundError:
            continue
        found |= {f"socket:[{r[9]}]" for r in rows if int(r[1].rsplit(":", 1)[1], 16) == port}
    return found


def listening(port, pid="self"):
    """Whether anybody there listens at @port."""
    return bool(_listeners(port, pid))


def listens(pid, port):
    """Whether this process does."""
    return bool(_listeners(port, pid) & set(descriptors(pid).values()))


def threads(pid):
    """A line for each thread: its name, its state, and where in the kernel it waits."""
    lines = []
    for tid in sorted(os.listdir(f"/proc/{pid}/task"), key=int):
        with open(f"/proc/{pid}/task/{tid}/stat") as stat, open(f"/proc/{pid}/task/{tid}/wchan") as wchan:
            head, tail = stat.read().rsplit(")", 1)
            lines.append(f"{head.split('(', 1)[1]}: {tail.split()[0]} {wchan.read()}")
    return lines


def connections(pid):
    """A line for each of its IPv4 connections, from both of its ends if they are on this machine."""
    own = set(descriptors(pid).values())
    with open(f"/proc/{pid}/net/tcp") as f:
        rows = [line.split() for line in f][1:]
    rows = [r for r in rows if r[3] != "0A"]
    mine = [r for r in rows if f"socket:[{r[9]}]" in own]
    ends = {r[1] for r in mine} | {r[2] for r in mine}
    lines = []
    for r in rows:
        if r[1] in ends and r[2] in ends:
            a, b = (int(x.rsplit(":", 1)[1], 16) for x in r[1:3])
            tx, rx = (int(x, 16) for x in r[4].split(":"))
            timer, when = r[5].split(":")
            whose = "ours" if f"socket:[{r[9]}]" in own else "a peer's"
            lines.append(f"port {a} to {b}, {whose}: state {int(r[3], 16)}, {tx} to send, {rx} to read, "
                         f"timer {int(timer)} in {int(when, 16) / _TICKS:.2f} s, {int(r[6], 16)} retransmits")
    return lines


def tcp_memory():
    """How much of its memory for TCP the whole machine uses: short of it, it drops what others are sent."""
    with open("/proc/net/sockstat") as used:
        pages = [line.split()[-1] for line in used if line.startswith("TCP:")][0]
    try:
        with open("/proc/sys/net/ipv4/tcp_mem") as limits:
            return f"TCP uses {pages} pages; it is short of them from {limits.read().split()[1]} on"
    except FileNotFoundError:  # in a network namespace of one's own
        return f"TCP uses {pages} pages"


def wait_for(true, within=PATIENCE_S, every=0.01):
    """Return: whether true() came to be."""
    until = time.monotonic() + within
    while not true():
        if time.monotonic() > until:
            return False
        time.sleep(every)
    return True


def sanitized(binary):
    """Whether it was built with a sanitizer: it is slower then, and larger."""
    with open(binary, "rb") as f:
        text = f.read()
    return b"__asan_init" in text or b"__tsan_init" in text
