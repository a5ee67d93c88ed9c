# SPDX-License-Identifier: MIT
"""Runs the tests of one file and says in TAP how they went.

A test is a function whose name is a sentence about behaviour. It is given a
Context, which starts what it needs and ends it, whatever happens.
"""
import ctypes
import faulthandler
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import traceback

from . import proc
from .peers import has_ipv6
from .context import Context
from .sluice import tied

LIMIT_S = 60      # a test, unless it says otherwise
CLEAN_UP_S = 15   # on top, before the whole program is given up

_tests = []


class Fail(AssertionError):
    """The program under test did something wrong."""


class Skip(Exception):
    """The test cannot be run here; the text says why."""


class TimeLimit(Exception):
    """A test took longer than it may."""


def check(truth, what):
    """Fails unless @truth; @what is what was seen, with numbers."""
    if not truth:
        raise Fail(what)


def equal(got, want, what):
    check(got == want, f"{what}: {got!r}, not {want!r}")


def need_ipv6():
    if not has_ipv6():
        raise Skip("no IPv6 on this machine")


def uring_is_built():
    """Whether the program was built with io_uring."""
    return len(sys.argv) > 1 and not subprocess.run([sys.argv[1], "--mode=uring", "--version"],
                                                    capture_output=True).returncode


def _has_uring():
    """Whether it was, and this kernel lets us have it."""
    if not uring_is_built():
        return False
    room = ctypes.create_string_buffer(120)  # struct io_uring_params
    fd = ctypes.CDLL(None, use_errno=True).syscall(425, 1, room)  # io_uring_setup(2), which libc has no name for
    if fd < 0:
        print(f"# io_uring refused, not tested: {os.strerror(ctypes.get_errno())}")
        return False
    os.close(fd)
    return True


EACH_MODE = ("splice", "copy") + (("uring",) if _has_uring() else ())


def ways(modes=EACH_MODE, workers=(1, 2)):
    """Every mode with every number of workers, for test(each=...): what a sanitizer finds it finds with most of them."""
    if len(sys.argv) > 1 and proc.sanitized(sys.argv[1]):
        workers = workers[-1:]
    return [{"mode": m, "workers": w} for m in modes for w in workers]


MODES = [{"mode": m} for m in EACH_MODE]


def test(each=({},), limit=LIMIT_S):
    """Declares a test, to be run once for each of these sets of options."""
    def declare(fn):
        for way in each:
            _tests.append((fn, way, limit))
        return fn
    return declare


def _title(fn, way):
    name = fn.__name__.replace("_", " ")
    how = ", ".join(str(v) if k == "mode" else f"{k} {v}" for k, v in way.items())
    return f"{name} [{how}]" if how else name


def _note(text):
    for line in str(text).splitlines():
        print("#", line[:400])


def _alarm(signum, frame):
    raise TimeLimit()


def _terminated(signum, frame):
    sys.exit(1)  # runs every clean-up on the way out


def _run_one(context, fn, limit):
    """Return: what follows "ok" or "not ok" in TAP, and whether it is good."""
    try:
        signal.alarm(limit)
        fn(context)
        context.end_well()
        return "", True
    except Skip as e:
        return f" # SKIP {e}", True
    except Exception as e:
        signal.alarm(0)
        _note(f"took longer than {limit} s" if isinstance(e, TimeLimit) else f"{type(e).__name__}: {e}")
        for frame in traceback.extract_tb(e.__traceback__)[1:]:
            _note(f"  {os.path.basename(frame.filename)}:{frame.lineno}: {frame.line}")
    finally:
        signal.alarm(0)
    _note(context.story())
    _note(proc.tcp_memory())
    return "", False


def _say(n, good, title, directive):
    print(f"{'ok' if good else 'not ok'} {n} - {title}{directive}")


def _run_here(binary, numbers):
    """Runs these tests one after the other. Return: how many failed."""
    bad = 0
    for n in numbers:
        fn, way, limit = _tests[n - 1]
        faulthandler.dump_traceback_later(limit + CLEAN_UP_S, exit=True)
        context = Context(binary, dict(way))
        try:
            directive, good = _run_one(context, fn, limit)
        finally:
            context.close()
        bad += not good
        _say(n, good, _title(fn, way), directive)
    faulthandler.cancel_dump_traceback_later()
    return bad


class _Share:
    """Some of the tests, run one after the other by a process of its own."""

    def __init__(self, binary, numbers):
        self.numbers = numbers
        self._said = tempfile.TemporaryFile("w+")
        self._until = time.monotonic() + sum(_tests[n - 1][2] + CLEAN_UP_S for n in numbers)
        words = [sys.executable, "-B", sys.argv[0], binary, "=" + ",".join(map(str, numbers))]
        self._process = subprocess.Popen(tied(words), stdin=subprocess.DEVNULL, stdout=self._said,
                                         stderr=subprocess.STDOUT)

    def wait(self):
        """Return: {number: its lines of TAP}, whatever has become of it."""
        try:
            self._process.wait(max(0, self._until - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.end()
        said, lines = {}, []
        self._said.seek(0)
        for line in self._said.read().splitlines():
            lines.append(line)
            m = re.match(r"(?:not )?ok (\d+) ", line)
            if m:
                said[int(m[1])] = lines
                lines = []
        for n in self.numbers:
            if n not in said:  # it has died of this one
                said[n] = ["# " + line for line in lines] + [f"not ok {n} - {_title(*_tests[n - 1][:2])}"]
                lines = []
        return said

    def end(self):
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(CLEAN_UP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


def _run_shared(binary, numbers, at_once):
    """Shares them out between so many processes. Return: how many failed."""
    shares, said = [], {}
    try:
        shares = [_Share(binary, numbers[k::at_once]) for k in range(at_once) if numbers[k::at_once]]
        for share in shares:
            said.update(share.wait())
    finally:
        for share in shares:
            share.end()
    for n in numbers:  # in their order, as TAP wants it
        print("\n".join(said[n]))
    return sum(said[n][-1].startswith("not ok") for n in numbers)


def run(at_once=1):
    """The main program of every test file: FILE SLUICE [PART-OF-A-NAME | =NUMBER,NUMBER...].

    @at_once:	how many of its tests may run at a time: more than one where all they do is wait
    """
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} SLUICE [PART-OF-A-NAME]")
    signal.signal(signal.SIGALRM, _alarm)
    signal.signal(signal.SIGTERM, _terminated)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    sys.stdout.reconfigure(line_buffering=True)
    binary, part = os.path.abspath(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""
    if part.startswith("="):
        sys.exit(_run_here(binary, [int(n) for n in part[1:].split(",")]) > 0)
    numbers = [n for n, t in enumerate(_tests, 1) if part in _title(*t[:2])]
    print(f"1..{len(_tests)}" if len(numbers) == len(_tests) else f"# {len(numbers)} of {len(_tests)}")
    if at_once > 1 and len(numbers) > 1:
        sys.exit(_run_shared(binary, numbers, at_once) > 0)
    sys.exit(_run_here(binary, numbers) > 0)
