#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Many connections at once, and many one after the other, with every kind of end.

	LOAD_BIG=1	4,000 at once with 1 MiB both ways, and 100,000 short ones
	LOAD_SEED=N	other ends
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "daemon"))

from kit import EACH_MODE, KIB, MIB, check, equal, run, test  # noqa: E402

from books import Base, adds_up, nothing_is_left  # noqa: E402
from peers import Peers  # noqa: E402

BIG = bool(os.environ.get("LOAD_BIG"))
SEED = int(os.environ.get("LOAD_SEED", "1"))
AT_ONCE, SIZE = (4000, MIB) if BIG else (1000, 256 * KIB)
SHORT = 100000 if BIG else 10000
WAYS = [{"mode": m} for m in EACH_MODE + (("auto",) if BIG else ())]
LIMIT_S = 280 if BIG else 60


def begin(t, *args):
    """A sluice before @args' peers, that has been used a little. Return: it, the peers, and what it has at rest."""
    peers = t.keep(Peers(t.binary, *args, seed=SEED))
    s = t.sluice("127.0.0.1:0", peers.target, "127.0.0.1:0", t.warm_up.target)
    t.warm_up.begin(s.addrs[1])
    t.warm_up.result()
    return s, peers, Base(s)


def load(t, *args):
    """Return: what the peers counted; all else has been checked."""
    t.warm_up = t.keep(Peers(t.binary, "short", 200, 50, 20000))
    s, peers, base = begin(t, *args)
    peers.begin(s.addrs[0])
    counted = peers.result()
    adds_up(nothing_is_left(t, s, base), base.totals, counted)
    print("# " + ", ".join(f"{k} {n}" for k, n in counted.items() if n))
    return counted


@test(each=WAYS, limit=LIMIT_S)
def all_bytes_of_many_connections_at_once_arrive_both_ways(t):
    counted = load(t, "even", AT_ONCE, AT_ONCE, SIZE)
    equal(counted["orderly"], AT_ONCE, "connections that went to their end")
    equal(counted["heard"], AT_ONCE * (2 * SIZE + 8), "bytes heard, with a hello of 8 each")
    equal(counted["fins"], 2 * AT_ONCE, "FINs heard")


@test(each=WAYS, limit=LIMIT_S)
def many_short_connections_end_in_every_way_and_as_they_must(t):
    counted = load(t, "short", SHORT, 200, 20000)
    equal(counted["served"] + counted["strangers"], SHORT, "connections that the servers have seen")
    check(counted["resets"] > SHORT / 20 and counted["urgent_seen"] > SHORT / 50, f"a poor mixture: {counted}")
    equal((counted["unserved"], counted["late"], counted["urgent_missed"]), (0, 0, 0), "unserved, late, urgent missed")


if __name__ == "__main__":
    run()
