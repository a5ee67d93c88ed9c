# SPDX-License-Identifier: MIT
"""Three network namespaces in a row: client - sluice - server, with a veth pair between two.

The one in the middle forwards no packets, so all that passes goes through the
program. Programs of others run in them; all end, and all is taken down, with the test.
"""
import glob
import os
import shutil
import subprocess

from . import proc
from .tap import Skip

CLIENT, NEAR, FAR, SERVER = "10.201.1.2", "10.201.1.1", "10.201.2.1", "10.201.2.2"
TO_CLIENT, TO_SERVER = "left", "right"  # what the devices of each pair are called


def need(*programs):
    if os.geteuid() != 0:
        raise Skip("only root can make network namespaces")
    for program in ("ip",) + programs:
        if not shutil.which(program):
            raise Skip(f"{program} is not installed")


def _ip(*words):
    p = subprocess.run(["ip", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=10)
    return p.returncode == 0, p.stderr.strip()


def _sweep():
    """Takes down what a run that was killed has left."""
    for path in glob.glob("/run/netns/slt_*"):
        name = os.path.basename(path)
        pid = name.split("_")[1]
        if pid.isdigit() and not os.path.exists(f"/proc/{pid}"):
            _ip("netns", "del", name)


def alone(*addresses, then="true"):
    """Words before a program, so that it has a network of its own: a loopback device with these addresses besides.

    @then:	a command of the shell that is run behind that
    """
    need("unshare")
    if subprocess.run(["unshare", "-n", "true"], capture_output=True, check=False).returncode:
        raise Skip("no network namespaces here")
    setup = " && ".join(["ip link set lo up"] + [f"ip addr add {a} dev lo" for a in addresses] + [then])
    return ["unshare", "-n", "sh", "-c", setup + ' && exec "$@"', "sh"]


class Program:
    """A program of somebody else, in a namespace."""

    def __init__(self, words, **kwargs):
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, **kwargs)

    def close(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Row:
    """The row of namespaces; names are this process's own."""

    def __init__(self, t):
        _sweep()
        self._t = t
        self.client, self.middle, self.server = (f"slt_{os.getpid()}_{x}" for x in "cms")
        for name in (self.client, self.middle, self.server):
            ok, why = _ip("netns", "add", name)
            if not ok:
                raise Skip(f"no network namespaces here: {why}")
            t.later(_ip, "netns", "del", name)
            _ip("-n", name, "link", "set", "lo", "up")
        self._join(self.client, CLIENT, self.middle, NEAR)
        self._join(self.middle, FAR, self.server, SERVER)

    def _join(self, ns_a, addr_a, ns_b, addr_b):
        ok, why = _ip("link", "add", TO_SERVER, "netns", ns_a, "type", "veth", "peer", "name", TO_CLIENT, "netns", ns_b)
        if not ok:
            raise Skip(f"no veth here: {why}")
        for ns, dev, addr in ((ns_a, TO_SERVER, addr_a), (ns_b, TO_CLIENT, addr_b)):
            self.ip(ns, "addr", "add", addr + "/24", "dev", dev)
            self.ip(ns, "link", "set", dev, "up")

    @staticmethod
    def ip(ns, *words):
        """Sets something up inside @ns."""
        ok, why = _ip("-n", ns, *words)
        if not ok:
            raise AssertionError(f"ip {' '.join(words)}: {why}")

    @staticmethod
    def inside(ns):
        """Words before a program that is to run in there; it keeps its process."""
        return ["ip", "netns", "exec", ns]

    def sluice(self, port, *args):
        return self._t.sluice(*args, NEAR + ":0", f"{SERVER}:{port}", wrap=self.inside(self.middle))

    def serve(self, port, *words):
        """Starts a program in the server's namespace, and waits until it listens."""
        p = self._t.keep(Program(self.inside(self.server) + list(words), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        pid = p.process.pid
        if not proc.wait_for(lambda: p.process.poll() is not None or proc.listening(port, pid)) or p.process.poll() is not None:
            raise AssertionError(f"{words[0]} does not listen")
        return p

    def start(self, *words):
        """Starts a program in the client's namespace; its stdout is a pipe."""
        return self._t.keep(Program(self.inside(self.client) + list(words), stdout=subprocess.PIPE))

    def run(self, *words, within=30):
        """Runs a program in the client's namespace. Return: (exit status, stdout as bytes)."""
        return self.run_in(self.client, *words, within=within)

    def run_in(self, ns, *words, within=30):
        p = subprocess.run(self.inside(ns) + list(words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, timeout=within, check=False)
        return p.returncode, p.stdout


def run_here(*words):
    """Runs a program. Return: (exit status, what it printed)."""
    if not shutil.which(words[0]):
        raise Skip(f"{words[0]} is not installed")
    p = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                       check=False, timeout=10)
    return p.returncode, p.stdout
