# SPDX-License-Identifier: MIT
"""Where the lab measures: the namespaces that stand, or new ones for the time of a command, or loopback.

    client namespace           this machine            server namespace
    10.0.1.2 ---- veth ---- 10.0.1.1   10.0.0.1 ---- veth ---- 10.0.0.2
                                 sluice                  sink, iperf3
"""
import contextlib
import os
import re
import shutil
import subprocess
import time

import contestants
from rig import Loopback, Rig, Trouble
from rounds import PATIENCE
from workloads import PORT, Bench

IPERF_PORT = 5201
WHY_ROOT = "makes network namespaces, links between them and cgroups, and sets net.ipv4.*"
WHOLE = {"rounds": 5, "seconds": 1.5}


def positive(kind):
    def read(text):
        value = kind(text)
        if not value > 0:
            raise ValueError
        return value
    read.__name__ = "number above 0"
    return read


def name_of_lab(text):
    if not re.fullmatch(r"[a-z][a-z0-9-]{0,11}", text):
        raise ValueError
    return text


def subnet(text):
    if not re.fullmatch(r"\d+\.\d+", text) or any(int(n) > 255 for n in text.split(".")):
        raise ValueError
    return text


def place_options(p):
    p.add_argument("--name", type=name_of_lab, default="sluice-lab", help="what all that is made is called after, "
                   "at most 12 of a-z, 0-9 and - [sluice-lab]")
    p.add_argument("--net", type=subnet, metavar="A.B", default="10.0",
                   help="A.B.0.0/24 and A.B.1.0/24 are used, unless the lab stands already [10.0]")
    build_option(p)


def build_option(p):
    p.add_argument("--build", metavar="DIR", help="the build to measure, as it is [build-release, made if need be]")


def measuring_options(p, loopback=True, **defaults):
    """What all that measure take. @defaults: rounds, seconds."""
    d = {**WHOLE, **defaults}
    place_options(p)
    p.add_argument("--seconds", type=positive(float), default=d["seconds"], metavar="S",
                   help=f"a sample takes so long [{d['seconds']}]")
    if d["rounds"]:
        p.add_argument("--rounds", type=positive(int), default=d["rounds"], metavar="N",
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
    if not args.build:
        contestants.BUILT.make()
        return
    contestants.BUILT.use(os.path.abspath(args.build))
    for path in (contestants.BUILT.sluice, contestants.BUILT.load):
        if not os.access(path, os.X_OK):
            raise Trouble(f"{path} is no program that this user may run; --build should name a build of sluice")


@contextlib.contextmanager
def ready(args):
    """A bench with its server: in the lab that stands, or one of its own."""
    use_build(args)
    if getattr(args, "loopback", False):
        with Loopback() as rig:
            bench = Bench(rig, args.seconds)
            bench.serve(0)
            yield bench
        return
    need_root(f"it {WHY_ROOT}" + ("; --loopback does without" if hasattr(args, "loopback") else ""))
    with Rig(args.net, args.name) as rig:
        if not rig.made["standing"]:
            start_servers(rig)
        for name in rig.made["servers"]:
            if not server_runs(rig, name):
                raise Trouble(f"the lab stands, but {name} has ended; try: lab down, lab up")
        yield Bench(rig, args.seconds)


def start_servers(rig):
    """Our own sink, which answers requests too, and iperf3 where it is installed."""
    Bench(rig, 0).serve(PORT)
    _note_server(rig, "sink", PORT)
    if shutil.which("iperf3"):
        rig.inside(rig.servers, ["iperf3", "-s", "-p", IPERF_PORT], stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _note_server(rig, "iperf3", IPERF_PORT)


def _note_server(rig, name, port):
    """Waits until it listens, and writes down which process that is."""
    until = time.monotonic() + 5
    while not (pid := _listener(rig, port)):
        if time.monotonic() > until:
            raise Trouble(f"{name} does not listen at {rig.server}:{port}")
        time.sleep(0.01)
    rig.made["servers"][name] = {"pid": pid, "port": port}
    rig.note()


def _listener(rig, port):
    """The process in the servers' namespace that listens at this port, None if none does."""
    for pid in rig.servers.pids():
        try:
            with open(f"/proc/{pid}/net/tcp") as a, open(f"/proc/{pid}/net/tcp6") as b:
                rows = [line.split() for line in a.readlines() + b.readlines()]
            held = {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
        except OSError:  # it has ended meanwhile
            continue
        if any(r[1].endswith(f":{port:04X}") and r[3] == "0A" and f"socket:[{r[9]}]" in held for r in rows):
            return pid
    return None


def server_runs(rig, name):
    """Whether it is the process that was written down."""
    group = "/" + rig.made["groups"][-1]
    try:
        with open(f"/proc/{rig.made['servers'][name]['pid']}/cgroup") as f:
            return any(line.strip().endswith(group) for line in f)
    except OSError:
        return False
