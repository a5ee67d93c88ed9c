# SPDX-License-Identifier: MIT
"""Scripts thrown by dice. They keep account of what is under way, so that none waits for what never comes."""
import random

MOST_UNREAD = 30000   # of an end: no more than a receive buffer takes at once
MOVES = (3, 9)        # in a script, at least and at most
SIZES = (1, 7, 100, 1000, 1448, 5000, 20000)

# How often a move is what.
WEIGHTS = {"say": 30, "hear": 20, "hear all": 12, "fin": 10, "close": 7, "reset": 5, "shout": 7, "catch": 3,
           "inline": 3, "burst": 8, "wait": 2}
BURSTS = (("say", "say"), ("say", "fin"), ("say", "close"), ("say", "reset"), ("say", "shout"), ("say", "shout", "say"),
          ("shout", "say"), ("say", "say", "say", "fin"), ("say", "shout", "fin"), ("fin", "close"), ("shout", "close"))


class _End:
    """@dead: its connection was reset; @shouted: it may have an urgent byte before it.

    No second one is sent then: where the first is next to be read the second takes its place, which cannot be seen,
    and two that follow each other at once are one to TCP.
    """

    def __init__(self):
        self.unread = 0
        self.closed = self.said_all = self.dead = self.shouted = False


class Thrower:
    def __init__(self, seed):
        self.dice = random.Random(seed)
        self.ends = {"a": _End(), "b": _End()}

    def _other(self, who):
        return self.ends["b" if who == "a" else "a"]

    def _finished(self, who):
        """Whether "hear all" of @who comes to an end."""
        other = self._other(who)
        return other.said_all or other.closed or self.ends[who].dead

    def _may(self, who, what):
        me, other = self.ends[who], self._other(who)
        if me.closed:
            return False
        if what == "hear":
            return me.unread > 0
        if what == "hear all":
            return self._finished(who)
        if what == "shout" and other.shouted:
            return False
        if what in ("say", "shout"):
            return other.unread < MOST_UNREAD // 2 and (not me.said_all or self.dice.random() < 0.1)
        if what == "burst":
            return not (me.said_all or me.dead or other.closed or other.unread or other.shouted)
        return True

    def _step(self, who, what):
        """Takes account of a step. Return: its text."""
        me, other = self.ends[who], self._other(who)
        if what == "say":
            n = min(self.dice.choice(SIZES), MOST_UNREAD - other.unread)
            if not me.said_all:
                other.unread += n
            me.dead |= other.closed
            return f"{who} say {n}"
        if what == "hear":
            n = self.dice.choice((1, me.unread, self.dice.randint(1, me.unread)))
            me.unread -= n
            return f"{who} hear {n}"
        other.shouted |= what == "shout"
        if what == "hear all":
            me.unread, me.shouted = 0, False
        if what in ("close", "reset"):
            other.dead |= what == "reset" or me.unread > 0
            me.closed = True
        me.said_all |= what in ("fin", "close", "reset")
        return f"{who} {what}"

    def script(self):
        moves = []
        for _ in range(self.dice.randint(*MOVES)):
            ways = [(who, what) for who in self.ends for what in WEIGHTS if self._may(who, what)]
            if not ways:
                break
            who, what = self.dice.choices(ways, [WEIGHTS[w] for _, w in ways])[0]
            if what == "wait":
                moves.append("wait")
            elif what == "burst":
                moves.append(" + ".join(self._step(who, w) for w in self.dice.choice(BURSTS)))
            else:
                moves.append(self._step(who, what))
        moves += [f"{who} hear all" for who in self.ends if self._may(who, "hear all")]
        return ", ".join(moves)


def scripts(seed, n):
    return [Thrower(seed * 1000003 + k).script() for k in range(n)]
