#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Everything at random, for as long as one likes.

Bulk, ping-pong, resets, half-closes, stalled readers, urgent bytes, a target that refuses and one that does not
answer; meanwhile sluice is stopped and continued, has its descriptors taken away, and is asked for its totals.

	SOAK_MINUTES=N	for so long in each mode, rather than some seconds
	SOAK_SEED=N	other dice
"""
import os
import random
import resource
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "daemon"))

from kit import EACH_MODE, FullBacklog, Nobody, check, connect, equal, proc, reset, run, test, told  # noqa: E402

from books import Base, adds_up, nothing_is_left  # noqa: E402
from peers import Peers  # noqa: E402

SECONDS = int(float(os.environ.get("SOAK_MINUTES", "0.05")) * 60)
SEED = int(os.environ.get("SOAK_SEED", "1"))
AT_ONCE, SIZE = 150, 2000000


class Trouble:
    """What is done to a sluice, and to its peers, while they work."""

    def __init__(self, s, peers, dice, refused, slow):
        self.s, self.peers, self.dice, self.refused, self.slow = s, peers, dice, refused, slow
        self.counts, self.waiting = {}, []
        self.limit = resource.prlimit(s.pid, resource.RLIMIT_NOFILE)
        self.last = s.stats()

    def stop_and_continue(self):
        self.s.signal(signal.SIGSTOP)
        time.sleep(self.dice.uniform(0.01, 0.4))
        self.s.signal(signal.SIGCONT)

    def stop_and_continue_the_peers(self):
        os.kill(self.peers.process.pid, signal.SIGSTOP)
        time.sleep(self.dice.uniform(0.01, 0.3))
        os.kill(self.peers.process.pid, signal.SIGCONT)

    def squeeze(self):
        """No more descriptors than it has now, or fewer, for a while."""
        room = max(proc.count(self.s.pid) + self.dice.randint(-20, 20), 30)
        resource.prlimit(self.s.pid, resource.RLIMIT_NOFILE, (room, self.limit[1]))
        time.sleep(self.dice.uniform(0.02, 0.4))
        resource.prlimit(self.s.pid, resource.RLIMIT_NOFILE, self.limit)

    def ask(self):
        """Totals never go back."""
        now = self.s.stats(within=20)
        for section in ("connections", "bytes"):
            for name, n in now[section].items():
                if name != "open" and not isinstance(n, dict):
                    check(n >= self.last[section][name], f"{name} was {self.last[section][name]} and is {n}")
        self.last = now

    def be_refused(self):
        for _ in range(self.dice.randint(1, 5)):
            equal(told(self.refused), "RST", "what a client is told whose target refuses")

    def wait_in_vain(self):
        """Clients of a target that does not answer; some leave before it is given up."""
        for client in self.waiting[:5]:
            self.waiting.remove(client)
            (reset if self.dice.random() < 0.5 else type(client).close)(client)
        self.waiting.append(connect(self.slow, timeout=20))
        self.waiting[-1].sendall(b"anybody there?")

    def some(self):
        what = self.dice.choice((self.stop_and_continue, self.stop_and_continue_the_peers, self.squeeze, self.ask,
                                 self.ask, self.be_refused, self.wait_in_vain))
        what()
        self.counts[what.__name__] = self.counts.get(what.__name__, 0) + 1
        time.sleep(self.dice.uniform(0, 0.1))

    def end(self):
        for client in self.waiting:
            client.close()


@test(each=[{"mode": m} for m in EACH_MODE + ("auto",)], limit=SECONDS + 150)
def whatever_happens_nothing_is_lost_mixed_up_or_left_over(t):
    peers = t.keep(Peers(t.binary, "mixed", 0, AT_ONCE, SIZE, SEED, SECONDS))
    nobody, slow = t.keep(Nobody()), t.keep(FullBacklog())
    s = t.sluice("--connect-timeout=700ms", "127.0.0.1:0", peers.target, "127.0.0.1:0", "127.0.0.1:%d" % nobody.addr[1],
                 "127.0.0.1:0", "127.0.0.1:%d" % slow.addr[1])
    base = Base(s)
    peers.begin(s.addrs[0])
    trouble = Trouble(s, peers, random.Random(SEED), s.addrs[1], s.addrs[2])
    until = time.monotonic() + SECONDS
    while time.monotonic() < until and peers.running():
        trouble.some()
    trouble.end()
    counted = peers.result()
    totals = nothing_is_left(t, s, base)
    said_in_vain = 14 * trouble.counts.get("wait_in_vain", 0)
    adds_up(totals, base.totals, {**counted, "said": counted["said"] + said_in_vain})
    ended = totals["connections"]["ended"]
    print(f"# {t.way['mode']}, {SECONDS} s: " + ", ".join(f"{k} {n}" for k, n in counted.items() if n))
    print("# " + ", ".join(f"{k} {n}" for k, n in trouble.counts.items()))
    print("# ended: " + ", ".join(f"{k} {n}" for k, n in ended.items() if n) + f"; bytes: {totals['bytes']}")
    check(counted["unserved"] <= ended["no_resources"], f"{counted['unserved']} clients were turned away, and {ended}")
    equal(counted["late"], 0, "servers that came too late")
    check(counted["orderly"] > SECONDS, "hardly anything has happened")


if __name__ == "__main__":
    run()
