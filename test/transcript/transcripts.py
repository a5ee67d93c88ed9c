#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Scripted peers see through sluice what they see without it, at every step.

	TRANSCRIPT_SEED=N	other scripts thrown by dice
	TRANSCRIPT_ROUNDS=N	how many of them
	TRANSCRIPT_SCRIPT="..."	play this one alone
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "daemon"))

from kit import check, equal, proc, run, test, ways  # noqa: E402

import company  # noqa: E402
import dice  # noqa: E402
from ends import PATIENCE_S  # noqa: E402
from play import CAREFUL_S, SETTLE_S, Differs, Play  # noqa: E402
from script import Script  # noqa: E402
from scripts import GROUPS  # noqa: E402

SEED = int(os.environ.get("TRANSCRIPT_SEED", "1"))
ROUNDS = int(os.environ.get("TRANSCRIPT_ROUNDS", "100"))
ONE = os.environ.get("TRANSCRIPT_SCRIPT")
EVERY_WAY = ways() + [{"mode": "auto", "workers": 2}]

_known = {}  # (text, swap): what a direct play has seen; a text tells why it is not to be compared


def roles(scripts):
    """Each script in both roles, but for those in which a is always who connects."""
    return [(s, swap) for s in map(Script, scripts) for swap in (False, True) if not (swap and s.late)]


def twice(job, stage, patience, settle=SETTLE_S):
    """Plays directly, and again. Return: what was seen; raises Differs if that was not the same."""
    log = Play(*job, stage, settle=settle).run()
    Play(*job, stage, log, patience).run()
    return log


def twice_if_need_be_twice(job, stage, patience):
    """The same with a second chance, for a machine so busy that a look came too early."""
    try:
        return twice(job, stage, patience)
    except Differs:
        return twice(job, stage, patience, CAREFUL_S)


def learn(t, scripts, patience=PATIENCE_S):
    """Has every script played directly, if it was not yet. Return: what plays are not determinate, and why."""
    new = [(s, swap) for s, swap in roles(scripts) if (s.text, swap) not in _known]
    logs = company.on_stages(company.direct(t), new, lambda job, stage: twice_if_need_be_twice(job, stage, patience))
    _known.update({(s.text, swap): log for (s, swap), log in zip(new, logs)})
    return [(s, swap, known(s, swap)) for s, swap in roles(scripts) if isinstance(known(s, swap), str)]


def learn_alone(t, jobs):
    """The same of a few that came out differently, one by one: many at once keep a slow machine busy."""
    for script, swap in jobs:
        (log,) = company.on_stages(company.direct(t), [(script, swap)],
                                   lambda job, stage: twice(job, stage, PATIENCE_S, CAREFUL_S))
        _known[script.text, swap] = log
    return [(s, swap, known(s, swap)) for s, swap in jobs if isinstance(known(s, swap), str)]


def known(script, swap):
    return _known[script.text, swap]


def tell(wrong, what):
    lines = [f"{len(wrong)} {what}"]
    for script, swap, why in wrong[:6]:
        lines += [f"  [{script.text}] with a as {'server' if swap else 'client'}", f"    {why}"]
    return "\n".join(lines)


def compare(t, scripts):
    """Has every script played through sluice; it must go as it went directly."""
    learn(t, scripts)
    s, stages = company.forwarded(t)
    jobs = [job for job in roles(scripts) if not isinstance(known(*job), str)]
    results = company.on_stages(stages, jobs, lambda job, stage: Play(*job, stage, known(*job)).run())
    wrong = [job + (why,) for job, why in zip(jobs, results) if isinstance(why, str)]
    check(not wrong, tell(wrong, f"of {len(jobs)} plays differ from the direct ones"))
    adds_up(s, len(jobs))


def adds_up(s, plays):
    """What sluice says of it, and has left of it."""
    totals = s.stats_at_rest()
    done, size = totals["connections"], totals["bytes"]
    equal((done["accepted"], done["open"]), (plays, 0), "connections accepted, and open at the end")
    equal(size["read"], size["delivered"] + size["dropped"], "bytes read, as delivered and dropped")
    equal(proc.count_becomes(s.pid, company.AT_ONCE, "socket:"), company.AT_ONCE, "sockets left")


@test()
def a_script_that_is_not_determinate_is_found(t):
    for text in ("a say some, a close, b hear all", "a say 10, b hear 10, a say some, a close"):
        wrong = learn(t, [text], patience=0.5)
        equal(len(wrong), len(roles([text])), f"plays of [{text}] that were found")


def declare(name, scripts):
    @test()
    def determinate(t):
        wrong = learn_alone(t, [(s, swap) for s, swap, _ in learn(t, scripts)])
        check(not wrong, tell(wrong, "plays were not the same twice, without any forwarder"))
    determinate.__name__ = f"{name} go the same way twice"

    @test(each=EVERY_WAY)
    def same(t):
        compare(t, scripts)
    same.__name__ = f"{name} look the same through it"


if ONE:
    declare("one", [ONE])
else:
    for _name, _scripts in GROUPS.items():
        declare(_name, _scripts)
    declare(f"{ROUNDS} scripts thrown with seed {SEED}", dice.scripts(SEED, ROUNDS))

if __name__ == "__main__":
    run()
