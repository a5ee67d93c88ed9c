# SPDX-License-Identifier: MIT
"""What two peers do, step by step, in a line that reads like English.

	a say 100, b hear 100, a fin, b hear all, b say 50 + b close, a hear all

Steps stand between commas, and after each of them both ends are looked at.
Steps of one end that are joined by "+" follow each other without a look in
between, as fast as they can. The words:

	say N		send N bytes
	say some	the same, nobody knows how many: never determinate
	hear N		receive N bytes, or to an end that comes before
	hear all	receive to the end
	hear rest	the same, where nobody can say how much that is
	fin		shutdown(SHUT_WR)
	close		close(2); if there are unread bytes the kernel resets
	reset		close with SO_LINGER 0
	shout		send an urgent byte
	catch		receive it, with MSG_OOB
	inline		have urgent bytes among the others from now on
	pour N		begin to send N bytes, whether somebody reads or not
	stuck		wait until no more of that is taken, or all is
	poured		wait for the end of that
	accept		be accepted, for an end that is "late"
	wait		let 30 ms pass; stands alone

A script that begins with "late" has an end b that is not accepted at once; there
a is always the client. Of a script in which somebody pours, only the last look
counts: how much of a flood lies where, before it has been read, depends on
buffer sizes, and a forwarder has more of them. In it bytes must be those that
were sent, from the first on, and the kind of every end must be the same.
"""

WORDS = {"say": 1, "hear": 1, "pour": 1, "fin": 0, "close": 0, "reset": 0, "shout": 0, "catch": 0, "inline": 0,
         "stuck": 0, "poured": 0, "accept": 0}
AMOUNTS = {"say": ("some",), "hear": ("all", "rest"), "pour": ()}


class Step:
    """@who does @what; @much is a number, a word, or None."""

    def __init__(self, text):
        words = text.split()
        if words == ["wait"]:
            self.who, self.what, self.much = None, "wait", None
            return
        if len(words) < 2 or words[0] not in ("a", "b") or WORDS.get(words[1]) != len(words) - 2:
            raise ValueError(f"no step: {text!r}")
        self.who, self.what = words[:2]
        self.much = words[2] if len(words) > 2 else None
        if self.much is not None and self.much not in AMOUNTS[self.what]:
            self.much = int(self.much)


class Script:
    """@moves: lists of steps; @late, @pours: see above."""

    def __init__(self, text):
        parts = [p.strip() for p in text.split(",")]
        self.text = text
        self.late = parts[0] == "late"
        self.moves = [[Step(s) for s in p.split("+")] for p in parts[self.late:]]
        self.names = parts[self.late:]
        self.pours = any(s.what == "pour" for m in self.moves for s in m)
        for move, name in zip(self.moves, self.names):
            if len({s.who for s in move}) > 1:
                raise ValueError(f"two ends in one move: {name!r}")
