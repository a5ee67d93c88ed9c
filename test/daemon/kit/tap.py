# SPDX-License-Identifier: MIT
"""Runs the tests of one file and says in TAP how they went.

A test is a function whose name is a sentence about behaviour. It is given a
Scene, which starts what it needs and ends it, whatever happens.
"""
import faulthandler
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback

from .peers import has_ipv6
from .scene import Scene
from .sluice import end_with_parent

LIMIT_S = 20      # a test, unless it says otherwise
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


def ways(modes=("splice", "copy"), workers=(1, 2)):
    """Every mode with every number of workers, for test(each=...)."""
    return [{"mode": m, "workers": w} for m in modes for w in workers]


MODES = [{"mode": "splice"}, {"mode": "copy"}]


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


def _run_one(scene, fn, limit):
    """Return: what follows "ok" or "not ok" in TAP, and whether it is good."""
    try:
        signal.alarm(limit)
        fn(scene)
        scene.end_well()
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
    _note(scene.story())
    return "", False


def _say(n, good, title, directive):
    print(f"{'ok' if good else 'not ok'} {n} - {title}{directive}")


def _run_here(binary, numbers):
    """Runs these tests one after the other. Return: how many failed."""
    bad = 0
    for n in numbers:
        fn, way, limit = _tests[n - 1]
        faulthandler.dump_traceback_later(limit + CLEAN_UP_S, exit=True)
        scene = Scene(binary, dict(way))
        try:
            directive, good = _run_one(scene, fn, limit)
        finally:
            scene.close()
        bad += not good
        _say(n, good, _title(fn, way), directive)
    faulthandler.cancel_dump_traceback_later()
    return bad


class _Beside:
    """One test in a process of its own."""

    def __init__(self, binary, n):
        self.n = n
        self._said = tempfile.TemporaryFile("w+")
        self._until = time.monotonic() + _tests[n - 1][2] + 2 * CLEAN_UP_S
        words = [sys.executable, "-B", sys.argv[0], binary, f"={n}"]
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=self._said, stderr=subprocess.STDOUT,
                                        preexec_fn=end_with_parent)

    def is_over(self):
        if self.process.poll() is None and time.monotonic() > self._until:
            self.process.kill()
            self.process.wait()
        return self.process.poll() is not None

    def lines(self):
        """Its lines of TAP, whatever has become of it."""
        self._said.seek(0)
        lines = self._said.read().splitlines()
        self._said.close()
        if any(line.startswith(("ok ", "not ok ")) for line in lines):
            return lines
        return ["# " + line for line in lines] + [f"not ok {self.n} - {_title(*_tests[self.n - 1][:2])}"]

    def end(self):
        self.process.terminate()
        self.process.wait()


def _run_beside(binary, numbers, at_once):
    """Runs each in a process of its own, several at a time. Return: how many failed."""
    left, running, said, bad = list(numbers), [], {}, 0
    try:
        while left or running:
            while left and len(running) < at_once:
                running.append(_Beside(binary, left.pop(0)))
            for b in [b for b in running if b.is_over()]:
                running.remove(b)
                said[b.n] = b.lines()
            while numbers and numbers[0] in said:  # in their order, as TAP wants it
                lines = said[numbers.pop(0)]
                print("\n".join(lines))
                bad += any(line.startswith("not ok ") for line in lines)
            time.sleep(0.02)
    finally:
        for b in running:
            b.end()
    return bad


def run(at_once=1):
    """The main program of every test file: FILE SLUICE [PART-OF-A-NAME | =NUMBER].

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
        sys.exit(_run_here(binary, [int(part[1:])]) > 0)
    numbers = [n for n, t in enumerate(_tests, 1) if part in _title(*t[:2])]
    print(f"1..{len(_tests)}" if len(numbers) == len(_tests) else f"# {len(numbers)} of {len(_tests)}")
    if at_once > 1 and len(numbers) > 1:
        sys.exit(_run_beside(binary, numbers, at_once) > 0)
    sys.exit(_run_here(binary, numbers) > 0)
