# SPDX-License-Identifier: MIT
"""The program under test, started, watched and stopped from outside."""
import contextlib
import ctypes
import json
import os
import re
import resource
import signal
import subprocess
import threading
import time

from . import proc
from .proc import PATIENCE_S

READY = re.compile(r"^sluice: ready: ")
RULE = re.compile(r"^sluice: (\S+) -> (\S+)")
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def tied(words, number="TERM", user=None):
    """What starts this program, as another user if need be, such that it gets this signal when we have died.

    A preexec_fn would do, but Python makes a copy of itself for that: to start true(1) took five times as long.
    """
    who = [] if user is None else [f"--reuid={user}", f"--regid={user}", "--clear-groups"]
    return ["setpriv", "--pdeathsig", number, *who, "--", *words]


class Lines:
    """Reads a pipe to its end, line by line, in a thread of its own."""

    def __init__(self, pipe):
        self.lines = []
        self.ended = False
        self._pipe = pipe
        self._news = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        with self._pipe, contextlib.suppress(OSError):  # a terminal may end with EIO
            for line in self._pipe:
                with self._news:
                    self.lines.append(line.decode(errors="replace").rstrip("\r\n"))
                    self._news.notify_all()
        with self._news:
            self.ended = True
            self._news.notify_all()

    def find(self, pattern, start=0, within=PATIENCE_S):
        """Waits for a line that matches. Return: its match, None if none came."""
        until = time.monotonic() + within
        with self._news:
            while True:
                for line in self.lines[start:]:
                    m = re.search(pattern, line)
                    if m:
                        return m
                left = until - time.monotonic()
                if self.ended or left <= 0:
                    return None
                self._news.wait(left)

    def wait_end(self, within=PATIENCE_S):
        with self._news:
            self._news.wait_for(lambda: self.ended, within)
        return self.lines


def split_address(text):
    """"[::1]:80" -> ("::1", 80), as connect() takes it."""
    host, port = text.rsplit(":", 1)
    return host.strip("[]"), int(port)


class Sluice:
    """One run of the binary.

    @args:	its options and rules; --stats=json is always added
    @wrap:	words before the program: strace, prlimit
    @user:	uid to run as; needs root
    @limits:	{resource.RLIMIT_x: n} for it alone, soft and hard alike, or (soft, hard)
    @ready:	whether to wait until it says that it accepts
    @leaks:	whether LeakSanitizer, if it is built with it, can work: not while it is traced
    @stdout, @stderr: a file instead of a pipe that is read here
    """

    def __init__(self, binary, args, wrap=(), user=None, limits=None, ready=True, leaks=True, stats="--stats=json",
                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL):
        self.argv = list(wrap) + [binary] + ([stats] if stats else []) + list(args)
        self.user, self.limits, self.wait_ready = user, limits or {}, ready
        self.files = dict(stdin=stdin, stdout=stdout, stderr=stderr)
        self.leaks = leaks and "strace" not in self.argv
        self.process = self.out = self.err = None
        self.addrs = []

    def _limit(self):
        """In the child, which another program might not start with such limits."""
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        for what, n in self.limits.items():
            resource.setrlimit(what, n if isinstance(n, tuple) else (n, n))

    def _start(self, env):
        if not self.limits:
            return subprocess.Popen(tied(self.argv, "KILL", self.user), env=env, **self.files)
        who = {} if self.user is None else dict(user=self.user, group=self.user, extra_groups=[])
        return subprocess.Popen(self.argv, preexec_fn=self._limit, env=env, **self.files, **who)

    def begin(self):
        env = dict(os.environ, RES_OPTIONS="timeout:1 attempts:1")
        if not self.leaks:
            env["ASAN_OPTIONS"] = "detect_leaks=0"
        self.process = self._start(env)
        self.pid = self.process.pid
        self.out = Lines(self.process.stdout) if self.process.stdout else None
        self.err = Lines(self.process.stderr) if self.process.stderr else None
        if self.wait_ready and not self.err.find(READY):
            raise AssertionError(f"it did not get ready: {self.err.lines}")
        if self.err:
            rules = [RULE.match(line) for line in list(self.err.lines)]
            self.addrs = [split_address(m.group(1)) for m in rules if m]

    @property
    def addr(self):
        """Where the first rule listens, as connect() takes it."""
        host, port = self.addrs[0]
        return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host), port

    def signal(self, number):
        self.process.send_signal(number)

    def alive(self):
        return self.process.poll() is None

    def stats(self, within=PATIENCE_S):
        """The totals now, asked for with SIGUSR1."""
        before = len(self.out.lines)
        self.signal(signal.SIGUSR1)
        m = self.out.find(r"^\{.*\}$", before, within)
        if not m:
            raise AssertionError("SIGUSR1: no totals came")
        return json.loads(m.group(0))

    def stats_when(self, true, within=PATIENCE_S):
        """The totals, as soon as true(totals), which must come to be."""
        until = time.monotonic() + within
        while True:
            totals = self.stats()
            if true(totals):
                return totals
            if time.monotonic() > until:
                raise AssertionError(f"waited for in vain, {within} s: {totals}")
            time.sleep(0.01)

    def stats_at_rest(self, within=PATIENCE_S):
        """The totals once no connection is open."""
        return self.stats_when(lambda s: not s["connections"]["open"], within)

    def wait(self, within=PATIENCE_S):
        """Waits for its end. Return: its exit status; raises if it goes on."""
        try:
            return self.process.wait(within)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running {within} s later") from None

    def stop(self, within=PATIENCE_S):
        """Ends it with SIGTERM, and must see it end well. Return: its totals."""
        if self.alive():
            self.signal(signal.SIGTERM)
        status = self.wait(within)
        if status:
            raise AssertionError(f"SIGTERM: exit status {status}, not 0")
        if not self.out or not self.argv.count("--stats=json"):
            return None
        return json.loads(self.out.wait_end()[-1])

    def result(self, within=PATIENCE_S):
        """Waits for its end. Return: (exit status, stdout, lines of stderr)."""
        status = self.wait(within)
        return status, "\n".join(self.out.wait_end()), self.err.wait_end()

    def end_well(self):
        if self.alive():
            self.signal(signal.SIGTERM)
            self.signal(signal.SIGINT)  # not waiting for connections that are open
            status = self.wait()
            if status:
                raise AssertionError(f"at the end: exit status {status}, not 0")
        for line in self.err.wait_end() if self.err else []:
            if not line.startswith("sluice: "):
                raise AssertionError(f"not a line of ours on stderr: {line}")

    def story(self):
        """What became of it, what it said, and what its threads and sockets are at."""
        if not self.process:
            return " ".join(self.argv) + "\n  not started"
        lines = self.err.lines if self.err else []
        state = "running" if self.alive() else f"exit status {self.process.returncode}"
        told = [" ".join(self.argv), f"  {state}"] + ["  " + li for li in lines[:10] + lines[10:][-20:]]
        if self.alive():
            try:
                told += ["  " + li for li in proc.threads(self.pid) + proc.connections(self.pid)[:20]]
            except OSError:
                pass
        return "\n".join(told)

    def close(self):
        if self.process and self.alive():
            self.process.kill()
            self.process.wait()
