# SPDX-License-Identifier: MIT
"""Plays a script on a connection and writes down what both ends saw.

The first time, on a direct connection, a look waits until nothing changes any
more. After that the play follows what was written down: it goes on as soon as
both ends look as they looked then, however long that takes within reason, and
fails at the first step for which they do not. So nothing depends on how quick
the machine is, and nothing is compared in which two direct plays differ.
"""
import contextlib
import time

from ends import PATIENCE_S, End, now, words

SETTLE_S = 0.012   # nothing has changed for so long: that is how it looks
CAREFUL_S = 0.08   # the same for one that came out differently: a busy machine takes its time
STEP_S = 0.001     # between two looks at what should come
WAIT_S = 0.03      # "wait"
HOLD_S = 0.05      # at the end it must go on looking so


class Differs(Exception):
    """It did not go as it was written down."""


def _look(ends):
    return tuple(e.look() if e else None for e in ends.values())


def _settle(ends, settle):
    before = None
    seen = _look(ends)
    until = now() + PATIENCE_S
    while seen != before and now() < until:
        time.sleep(settle)
        before, seen = seen, _look(ends)
    return seen


def _await(ends, want, patience):
    until = now() + patience
    seen = _look(ends)
    while seen != want and now() < until:
        time.sleep(STEP_S)
        seen = _look(ends)
    return seen


class Play:
    """@swap: who connects, see Stage; @wrote: what was seen the first time, or None."""

    def __init__(self, script, swap, stage, wrote=None, patience=PATIENCE_S, settle=SETTLE_S):
        self.script, self.swap, self.stage, self.wrote, self.patience = script, swap, stage, wrote, patience
        self.settle, self.log = settle, []

    def _do(self, ends, step):
        if step.what == "wait":
            time.sleep(WAIT_S)
            return "ok"
        if step.what == "accept":
            ends["b"] = self.stage.accept(ends["a"])
            return "ok"
        return ends[step.who].do(step)

    def _compare(self, name, part, seen, want):
        if seen != want:
            raise Differs(f"{name}: {part}: {seen}, and it was: {want}")

    def _watch(self, ends, name, last):
        """The look after a move, compared if there is something to compare it with."""
        if self.script.pours and not last:
            return None
        if not self.wrote:
            return _settle(ends, self.settle)
        want = self.wrote[len(self.log)][1]
        seen = _await(ends, want, self.patience)
        if seen == want and last:
            time.sleep(HOLD_S)
            seen = _look(ends)
        for who, s, w in zip(ends, seen, want):
            self._compare(name, f"{who} looks", words(s), words(w))
        return seen

    def _move(self, ends, move, name, last):
        results = [self._do(ends, step) for step in move]
        if self.wrote:
            self._compare(name, "came to", results, self.wrote[len(self.log)][0])
        self.log.append((results, self._watch(ends, name, last)))

    def run(self):
        """Return: what was seen, to be followed by later plays."""
        with contextlib.ExitStack() as stack:
            ends = self.stage.open(self.script.late, self.swap)
            stack.callback(lambda: [e.dispose() for e in ends.values() if e])
            moves = list(zip(self.script.moves, self.script.names))
            for n, (move, name) in enumerate(moves):
                self._move(ends, move, name, n == len(moves) - 1)
        return self.log


class Stage:
    """Where plays are given, one after the other: a listening socket, and a way to it, direct or not.

    @first:	the first of @streams streams: no other stage has them, so that
    		the bytes of one connection are known from those of another
    """

    def __init__(self, backend, way, connect, first, streams):
        self.backend, self.way, self._connect = backend, way, connect
        self._first, self._streams, self._plays = first, streams, 0

    def open(self, late, swap):
        """Two ends of a new connection. @swap: a is who accepts, b who connects."""
        self._stream = self._first + 2 * self._plays % self._streams
        self._plays += 1
        client = End(self._connect(self.way), self._stream, self._stream + 1)
        if late:
            return {"a": client, "b": None}
        server = self.accept(client)
        return {"a": server, "b": client} if swap else {"a": client, "b": server}

    def accept(self, client):
        server = End(self.backend.accept(), self._stream + 1, self._stream)
        server.other, client.other = client, server
        return server
