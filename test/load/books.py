# SPDX-License-Identifier: MIT
"""Whether what sluice counted, and holds, agrees with what the peers did."""
from kit import KIB, check, equal, proc

MOST_GROWTH = 2048 * KIB
RING = 2 * 32 * 64 * KIB  # buffers that two workers have in stock


class Base:
    """What a sluice has when it has nothing to do, to be compared with later."""

    def __init__(self, s):
        self.totals = s.stats_at_rest()
        self.fds = _fds(s)
        self.rss = proc.rss(s.pid)


def _fds(s):
    """Descriptors but for those of pipes, which come and go."""
    return proc.count(s.pid) - proc.count(s.pid, "pipe:")


def nothing_is_left(t, s, base):
    """Return: the totals."""
    totals = s.stats_at_rest(within=40)  # linger is 30 s
    equal(totals["connections"]["open"], 0, "connections open")
    equal((totals["pipes"]["out"], totals["buffers"]["now"]), (0, 0), "pipes and buffers out")
    as_before = proc.wait_for(lambda: _fds(s) == base.fds)
    check(as_before, f"{_fds(s)} descriptors that are no pipes, not {base.fds}")
    ends = proc.count(s.pid, "pipe:")
    pipes = totals["pipes"]["now"]
    check(ends <= 2 * pipes + 2, f"{ends} ends of pipes; the totals say {pipes} pipes")
    if not proc.sanitized(t.binary):
        most = MOST_GROWTH + (RING if t.way.get("mode") == "uring" else 0)

        def grown():
            return proc.rss(s.pid) - base.rss
        proc.wait_for(lambda: grown() <= most, within=15)  # what nobody needs is kept for 5 to 10 s
        check(grown() <= most, f"{grown() // KIB} KiB more memory than before")
    return totals


def adds_up(totals, before, peers):
    """read = delivered + dropped, exactly; and no more than was said, no less than was heard."""
    size, was = totals["bytes"], before["bytes"]
    equal(size["read"], size["delivered"] + size["dropped"], "bytes read, as delivered and dropped")
    equal(size["delivered"], size["to_targets"] + size["to_clients"], "bytes delivered, as to either side")
    read, delivered = size["read"] - was["read"], size["delivered"] - was["delivered"]
    check(peers["heard"] <= delivered <= read <= peers["said"],
          f"heard {peers['heard']}, delivered {delivered}, read {read}, said {peers['said']}: not in this order")
    done = totals["connections"]
    equal(done["accepted"], sum(done["ended"].values()), "connections accepted, as ended for each reason")
    check(done["ended"]["finished"] - before["connections"]["ended"]["finished"] >= peers["orderly"],
          f"{done['ended']}, of {peers['orderly']} connections that nobody cut short")
