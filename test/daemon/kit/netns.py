# SPDX-License-Identifier: MIT
"""Three network namespaces in a row: client - sluice - server, with a veth pair between two.

The one in the middle forwards no packets, so all that passes goes through the
program. Programs of others run in them; all end, and all is taken down, with the test.
"""
import os
import shutil
import subprocess
import sys

from . import proc
from .tap import Skip

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), *[os.pardir] * 3, "tools", "lib"))

import netns  # noqa: E402

CLIENT, NEAR, FAR, SERVER = "10.201.1.2", "10.201.1.1", "10.201.2.1", "10.201.2.2"
TO_CLIENT, TO_SERVER = "left", "right"  # what the devices of each pair are called


def need(*programs):
    if os.geteuid() != 0:
        raise Skip("only root can make network namespaces")
    for program in netns.PROGRAMS + programs:
        if not shutil.which(program):
            raise Skip(f"{program} is not installed")


def alone(*addresses, then="true"):
    """Words before a program, so that it has a network of its own: a loopback device with these addresses besides.

    @then:	a command of the shell that is run behind that
    """
    need()
    own = netns.unshared(network=True)
    if why := netns.refused(own):
        raise Skip(f"no network namespaces here: {why}")
    setup = " && ".join(["ip link set lo up"] + [f"ip addr add {a} dev lo" for a in addresses] + [then])
    return [*own, "sh", "-c", setup + ' && exec "$@"', "sh"]


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
        netns.sweep("slt")
        self._t = t
        self.client, self.middle, self.server = (f"slt_{os.getpid()}_{x}" for x in "cms")
        ends = (((self.client, TO_SERVER, CLIENT + "/24"), (self.middle, TO_CLIENT, NEAR + "/24")),
                ((self.middle, TO_SERVER, FAR + "/24"), (self.server, TO_CLIENT, SERVER + "/24")))
        try:
            for name in (self.client, self.middle, self.server):
                t.later(netns.delete, name)
                netns.add(name)
            for pair in ends:
                netns.link(*pair)
        except netns.Refused as e:
            raise Skip(f"no namespaces or no veth here: {e}") from None
        for end in ends[0] + ends[1]:
            netns.set_up(*end)

    @staticmethod
    def ip(ns, *words):
        """Sets something up inside @ns."""
        netns.ip(*words, ns=ns)

    @staticmethod
    def inside(ns):
        """Words before a program that is to run in there; it keeps its process."""
        return netns.inside(ns)

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
