# SPDX-License-Identifier: MIT
"""Plays many scripts at once: a stage for each player, directly or with a sluice before it."""
import itertools
import queue
import threading

from kit import connect

from play import Stage

AT_ONCE = 24   # stages
STREAMS = 64   # of a stage


def _stages(backends, addrs):
    return [Stage(b, at, connect, n * STREAMS, STREAMS) for n, (b, at) in enumerate(zip(backends, addrs))]


def direct(t):
    """Stages whose clients connect to the backend itself."""
    backends = [t.backend() for _ in range(AT_ONCE)]
    return _stages(backends, backends)


def forwarded(t):
    """Return: a sluice with a rule for each stage, and the stages."""
    backends = [t.backend() for _ in range(AT_ONCE)]
    s = t.sluice(*itertools.chain.from_iterable(("127.0.0.1:0", "127.0.0.1:%d" % b.addr[1]) for b in backends))
    return s, _stages(backends, s.addrs)


def on_stages(stages, jobs, fn):
    """fn(job, stage) for every job, one at a time on a stage. Return: what each returned, or why it failed, as text."""
    todo, results = queue.SimpleQueue(), [None] * len(jobs)
    for numbered in enumerate(jobs):
        todo.put(numbered)

    def work(stage):
        while True:
            try:
                n, job = todo.get_nowait()
            except queue.Empty:
                return
            try:
                results[n] = fn(job, stage)
            except Exception as e:
                results[n] = f"{type(e).__name__}: {e}"
    threads = [threading.Thread(target=work, args=(s,), daemon=True) for s in stages]
    for th in threads:
        th.start()
    for th in threads:
        th.join()
    return results
