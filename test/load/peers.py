# SPDX-License-Identifier: MIT
"""The C program that plays both ends of many connections, driven from here."""
import json
import os
import subprocess

from kit.sluice import tied


class Peers:
    """A run of it. @sluice: of the same build; @sort: "even", "short" or "mixed", see peers.c."""

    def __init__(self, sluice, sort, count, at_once, size, seed=1, seconds=0):
        words = [beside(sluice), sort] + [str(n) for n in (count, at_once, size, seed, seconds)]
        self.process = subprocess.Popen(tied(words, "KILL"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True)
        self.target = self.process.stdout.readline().split()[1]

    def begin(self, *addrs):
        """Has its clients connect there."""
        self.process.stdin.write("".join("%s:%d\n" % a for a in addrs) + "\n")
        self.process.stdin.close()

    def running(self):
        return self.process.poll() is None

    def result(self):
        """Return: what it counted; raises if not all went as it must."""
        line, wrong = self.process.stdout.readline(), self.process.stderr.read()
        status = self.process.wait(10)
        if status or wrong:
            raise AssertionError(f"exit status {status}: {line}\n{wrong}")
        return json.loads(line)

    def close(self):
        if self.running():
            self.process.kill()
        self.process.wait()
        for f in (self.process.stdout, self.process.stderr):
            f.close()


def beside(sluice):
    """Where the build that made @sluice has put it."""
    return os.path.join(os.path.dirname(sluice), os.pardir, "test", "load", "load-peers")
