# SPDX-License-Identifier: MIT
"""Takes samples, round by round, and says on stderr how far it is."""
import os
import platform
import sys
import time

from testbed import Trouble, cpu_total

PATIENCE = 10  # seconds that a sample waits for others to leave the machine alone
BAR = 24       # characters


def say(text):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def left(seconds):
    return f", {seconds / 60:.0f} min left" if seconds >= 90 else f", {seconds:.0f} s left"


class Progress:
    """A line that says what is done and how long the rest takes."""

    def __init__(self, who, steps):
        self.who, self.steps, self.done, self.since = who, steps, 0, time.monotonic()

    def step(self, what):
        rest = (time.monotonic() - self.since) / self.done * (self.steps - self.done) if self.done else 0
        full = BAR * self.done // self.steps
        say(f"[{'#' * full}{'-' * (BAR - full)}] {self.done + 1}/{self.steps} {what}" + (left(rest) if rest else ""))
        self.done += 1

    def complain(self, text):
        say("")
        print(f"{self.who}: {text}", file=sys.stderr)


def quiet(patience):
    """Waits until others use less than a fifth of a cpu. Return: whether they do."""
    until = time.monotonic() + patience
    while True:
        used = cpu_total()
        time.sleep(0.15)
        if (cpu_total() - used) / 0.15 < 0.2:
            return True
        if time.monotonic() > until:
            return False


def sample(bench, workload, contestant, progress, patience, calls):
    """Return: a sample; None if it failed, and that is said."""
    calm = quiet(patience)
    try:
        got = workload.sample(bench, contestant)
        if calls and hasattr(workload, "calls"):
            bench.testbed.clean()
            got |= workload.calls(bench, contestant)
    except Trouble as e:
        progress.complain(f"{contestant.name}: {e}")
        return None
    finally:
        bench.testbed.clean()
    if not calm:
        got["disturbed"] = True
    return got


def interleave(bench, workload, contestants, rounds, progress, what, patience=PATIENCE, calls=False):
    """A sample of each, then another of each, so that a machine that drifts does so for all.

    @calls:	whether to count system calls too, in the first round, in a run of its own
    Return: contestant's name: its samples, None where one failed.
    """
    samples = {c.name: [] for c in contestants}
    for n in range(rounds):
        for c in contestants:
            progress.step(f"{what}, round {n + 1} of {rounds}: {c.name}")
            samples[c.name].append(sample(bench, workload, c, progress, patience, calls and n == 0))
    say("")
    return samples


def cpu_model():
    with open("/proc/cpuinfo") as f:
        return next((line.split(":")[1].strip() for line in f if line.startswith("model name")), platform.machine())


def machine():
    return f"{os.cpu_count()} cpus ({cpu_model()}), Linux {platform.release()}"
