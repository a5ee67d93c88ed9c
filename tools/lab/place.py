# SPDX-License-Identifier: MIT
"""Where the lab measures: the namespaces that stand, or new ones for the time of a command, or loopback.

    client namespace           this machine            server namespace
    10.0.1.2 ---- veth ---- 10.0.1.1   10.0.0.1 ---- veth ---- 10.0.0.2
                                 sluice                  sink, iperf3
"""
import argparse
import contextlib
import os
import re
import shutil
import subprocess
import time

import contestants
from rounds import PATIENCE
from testbed import Loopback, Testbed, Trouble
from workloads import PORT, Bench

IPERF_PORT = 5201
WHY_ROOT = "makes network namespaces, links between them and cgroups, and sets net.ipv4.*"
WHOLE = {"rounds": 5, "seconds": 1.5}


def wants(right, true, kind=str):
    """Reads an argument, for argparse. @right says what it should be; @true judges it."""
    def read(text):
        with contextlib.suppress(ValueError):
            value = kind(text)
            if true(value):
                return value
        raise argparse.ArgumentTypeError(f"{text}: should be {right}")
    return read


def above_0(kind):
    return wants("a number above 0", lambda value: value > 0, kind)


def some_of(known):
    """A list of what is in @known."""
    known = [str(k) for k in known]
    return wants(f"a list of {','.join(known)}", lambda chosen: set(chosen) <= set(known), lambda text: text.split(","))


numbers = wants("a list of numbers, such as 1,8", lambda chosen: all(0 < int(n) <= 1024 for n in chosen),
                lambda text: text.split(","))


def place_options(p):
    a_name = wants("1 to 12 of a-z, 0-9 and -", lambda text: re.fullmatch(r"[a-z][a-z0-9-]{0,11}", text))
    a_net = wants("two numbers, such as 10.0", lambda text: re.fullmatch(r"\d{1,3}\.\d{1,3}", text))
    p.add_argument("--name", type=a_name, default="sluice-lab", help="what all that is made is called after, "
                   "at most 12 of a-z, 0-9 and - [sluice-lab]")
    p.add_argument("--net", type=a_net, metavar="A.B", default="10.0",
                   help="A.B.0.0/24 and A.B.1.0/24 are used, unless the lab stands already [10.0]")
    build_option(p)


def build_option(p):
    p.add_argument("--build", metavar="DIR", help="the build to measure, as it is [build-release, made if need be]")


def measuring_options(p, loopback=True, **defaults):
    """What all that measure take. @defaults: rounds, seconds."""
    d = {**WHOLE, **defaults}
    place_options(p)
    p.add_argument("--seconds", type=above_0(float), default=d["seconds"], metavar="S",
                   help=f"a sample takes so long [{d['seconds']}]")
    if d["rounds"]:
        p.add_argument("--rounds", type=above_0(int), default=d["rounds"], metavar="N",
                       help=f"samples of each [{d['rounds']}]")
    p.add_argument("--patience", type=float, default=PATIENCE, metavar="S",
                   help=f"wait so long for others on this machine to be quiet, before each sample [{PATIENCE}]")
    p.add_argument("--json", metavar="FILE", help="add the results to that file")
    if loopback:
        p.add_argument("--loopback", action="store_true", help="all at 127.0.0.1: needs no root, and misleads")


def need_root(what):
    if os.geteuid():
        raise Trouble(f"{what}: run it as root")


def use_build(args):
    """Makes the build, or takes the one that is named."""
    contestants.BUILT.take(args.build)


@contextlib.contextmanager
def ready(args):
    """A bench with its server: in the lab that stands, or one of its own."""
    use_build(args)
    if getattr(args, "loopback", False):
        with Loopback() as testbed:
            bench = Bench(testbed, args.seconds)
            bench.serve(0)
            yield bench
        return
    need_root(f"it {WHY_ROOT}" + ("; --loopback does without" if hasattr(args, "loopback") else ""))
    with Testbed(args.net, args.name) as testbed:
        if not testbed.made["standing"]:
            start_servers(testbed)
        for name in testbed.made["servers"]:
            if not server_runs(testbed, name):
                raise Trouble(f"the lab stands, but {name} has ended; try: lab down, lab up")
        yield Bench(testbed, args.seconds)


def start_servers(testbed):
    """Our own sink, which answers requests too, and iperf3 where it is installed."""
    Bench(testbed, 0).serve(PORT)
    _note_server(testbed, "sink", PORT)
    if shutil.which("iperf3"):
        testbed.inside(testbed.servers, ["iperf3", "-s", "-p", IPERF_PORT], stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _note_server(testbed, "iperf3", IPERF_PORT)


def _note_server(testbed, name, port):
    testbed.made["servers"][name] = {"pid": listening(testbed, name, port), "port": port}
    testbed.note()


def listening(testbed, name, port):
    """Waits until a server listens. Return: its process."""
    until = time.monotonic() + 5
    while not (pid := _listener(testbed, port)):
        if time.monotonic() > until:
            raise Trouble(f"{name} does not listen at {testbed.server}:{port}")
        time.sleep(0.01)
    return pid


def _listener(testbed, port):
    """The process in the servers' namespace that listens at this port, None if none does."""
    for pid in testbed.servers.pids():
        rows = []
        try:
            for path in filter(os.path.exists, (f"/proc/{pid}/net/tcp", f"/proc/{pid}/net/tcp6")):
                with open(path) as f:
                    rows += [line.split() for line in f]
            held = {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
        except OSError:  # it has ended meanwhile
            continue
        if any(r[1].endswith(f":{port:04X}") and r[3] == "0A" and f"socket:[{r[9]}]" in held for r in rows):
            return pid
    return None


def server_runs(testbed, name):
    """Whether it is the process that was written down."""
    group = "/" + testbed.made["groups"][-1]
    try:
        with open(f"/proc/{testbed.made['servers'][name]['pid']}/cgroup") as f:
            return any(line.strip().endswith(group) for line in f)
    except OSError:
        return False
