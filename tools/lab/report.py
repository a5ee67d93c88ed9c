# SPDX-License-Identifier: MIT
"""All of the lab in one go, and what it says as one HTML page: open it anywhere, it needs no network.

Runs ladder, stat, syscalls, rr and flame, each as you could by hand, with their results in one new file; then the page
is made of that file and of nothing else. --from FILE makes it of one that is there, and measures nothing; what the
file lacks, the page cannot be made without. --short takes less than two minutes, and says less.

Needs root, as those commands do.
"""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import flame
import page
import results
from place import above_0, need_root, numbers, place_options, use_build
from rounds import BAR, PATIENCE, left, say
from testbed import Trouble, settle

HELP = "run all of it, and write one page that says what came out (root)"
HERE = os.path.dirname(os.path.abspath(__file__))

# Command: seconds of a sample, rounds (0: it knows none), more options, and about how many seconds
# all of it takes.
FULL = {
    "ladder": (1.5, 5, [], 260),
    "stat": (1.5, 3, [], 30),
    "syscalls": (3, 0, [], 12),
    "rr": (1.5, 5, [], 170),
    "flame": (10, 0, ["--diff"], 60),
}
SHORT = {
    "ladder": (0.5, 1, [], 28),
    "stat": (1, 1, [], 8),
    "syscalls": (1, 0, [], 6),
    "rr": (0.5, 1, ["--connections=1,16"], 14),
    "flame": (4, 0, ["--diff"], 30),
}
SHORT_PATIENCE = 0.5  # seconds
NEEDS = {"ip": "iproute2", "perf": "linux-perf", "strace": "strace", "gnuplot": "gnuplot-nox"}


class Bar:
    """How far all of it is, by the seconds that its parts are known to take."""

    def __init__(self, parts):
        self.planned, self.parts, self.since = sum(parts), list(parts), time.monotonic()
        self.done = 0

    def show(self, what, into):
        """@into: seconds since the part began, which is never taken for over."""
        spent = self.done + min(into, self.parts[0] * 0.95)
        full = int(BAR * spent / self.planned)
        pace = max(1, (time.monotonic() - self.since) / spent) if spent > 5 else 1
        say(f"[{'#' * full}{'-' * (BAR - full)}] {what}{left(pace * (self.planned - spent))}")

    def next(self):
        self.done += self.parts.pop(0)


def options(p):
    place_options(p)
    p.add_argument("--short", action="store_true", help="less of everything: under two minutes")
    p.add_argument("--seconds", type=above_0(float), metavar="S",
                   help=f"a sample of the ladder takes so long, and what others take changes alike "
                   f"[{FULL['ladder'][0]}, short: {SHORT['ladder'][0]}]")
    p.add_argument("--rounds", type=above_0(int), metavar="N",
                   help="samples of each, where there is more than one [5, of stat 3; short: 1]")
    p.add_argument("--streams", type=numbers, metavar="A,B", help="as of lab ladder")
    p.add_argument("--connections", type=numbers, metavar="A,B", help="as of lab rr")
    p.add_argument("--from", dest="source", metavar="FILE", help="make the page of these results; measure nothing")
    p.add_argument("--json", metavar="FILE",
                   help="where the results go, in place of what is there [that of --out, as .json]")
    p.add_argument("--out", default="sluice-lab.html", metavar="FILE",
                   help="where the page goes [sluice-lab.html]; its flame graphs as pages of their own go beside it")
    p.add_argument("--patience", type=float, metavar="S",
                   help=f"wait so long for others to be quiet, before each sample [{PATIENCE}, short: {SHORT_PATIENCE}]")
    p.add_argument("--template", metavar="FILE", help="as of lab flame")


def steps(args):
    """Yields each command, its options, and about how many seconds it takes."""
    known = SHORT if args.short else FULL
    scale = args.seconds / known["ladder"][0] if args.seconds else 1
    asked = {"ladder": ("--streams", args.streams), "rr": ("--connections", args.connections)}
    for name, (seconds, rounds, more, about) in known.items():
        own = [f"--seconds={seconds * scale:g}", *more]
        if rounds:
            own.append(f"--rounds={args.rounds or rounds}")
            about *= (args.rounds or rounds) / rounds
        option, chosen = asked.get(name, (None, None))
        own += [f"{option}={','.join(chosen)}"] if chosen else []
        yield name, own, about * scale


def run_part(argv, bar, what):
    """Runs one command of the lab, and shows how far all is. Raises Trouble with what it said, if it failed."""
    with tempfile.TemporaryFile("w+") as said:
        with subprocess.Popen([sys.executable, os.path.join(HERE, "run"), *argv], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=said, start_new_session=True) as part:
            since = time.monotonic()
            try:
                while part.poll() is None:
                    bar.show(what, time.monotonic() - since)
                    time.sleep(0.2)
            except BaseException:
                part.send_signal(signal.SIGINT)  # once: then it takes down what it made
                part.wait()
                raise
        said.seek(0)
        lines = said.read().strip().splitlines()
    if part.returncode:
        raise Trouble(f"lab {what} failed: {lines[-1] if lines else f'exit status {part.returncode}'}")
    for line in lines:  # a sample that failed, say
        say("")
        print(line, file=sys.stderr)
    bar.next()


def measure(args):
    """Fills the file of results anew; looks first whether all is there, rather than after ten minutes."""
    need_root("it makes network namespaces, and has perf and strace look on (which --from FILE does not)")
    lacks = [program for program in NEEDS if not shutil.which(program)]
    if lacks:
        raise Trouble(f"not installed: {', '.join(lacks)}; try: apt install {' '.join(NEEDS[p] for p in lacks)}")
    flame.template(args.template)
    use_build(args)
    if os.path.exists(args.json):
        os.remove(args.json)
    settle()  # or a command would go on for minutes when this one is asked to end
    patience = args.patience if args.patience is not None else SHORT_PATIENCE if args.short else PATIENCE
    common = ["--name", args.name, "--net", args.net, "--json", args.json, "--patience", str(patience)]
    common += ["--build", args.build] if args.build else []
    planned = list(steps(args))
    bar = Bar([seconds for _, _, seconds in planned])
    for name, own, _ in planned:
        more = ["--template", args.template] if args.template and name == "flame" else []
        more += ["--out", os.path.splitext(args.out)[0] + "-flame"] if name == "flame" else []
        run_part([name, *common, *own, *more], bar, name)
    say("")


def run(args):
    folder = os.path.dirname(os.path.abspath(args.out))
    if not os.access(folder, os.W_OK):
        raise Trouble(f"--out {args.out}: there is no folder {folder} that may be written to")
    args.json = args.source or args.json or os.path.splitext(args.out)[0] + ".json"
    if not args.source:
        measure(args)
        results.keep(args, "report", {"short": args.short})
    elif not os.path.exists(args.source):
        raise Trouble(f"{args.source}: there is no such file; --from takes what lab report or --json has written")
    text = page.page(results.load(args.json), args.json)
    with open(args.out, "w") as f:
        f.write(text)
    print(f"{args.out}: made of {args.json}")
    return 0
