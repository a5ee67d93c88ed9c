# SPDX-License-Identifier: MIT
"""What sluice did meanwhile, by its own totals and by /proc: neither slows it, as strace would."""
import json
import os
import signal
import time

from testbed import Trouble


def switches(pid):
    """Context switches of all threads so far: those that waited, and those that were made to go."""
    total = 0
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/status") as f:
            total += sum(int(line.split()[1]) for line in f if "ctxt_switches" in line)
    return total


def totals(testbed, pid):
    """SIGUSR1 has sluice print them; it was started with --stats=json."""
    with open(testbed.folder + "/log") as log:
        log.seek(0, os.SEEK_END)
        os.kill(pid, signal.SIGUSR1)
        until, line = time.monotonic() + 5, ""
        while not (line.startswith("{") and line.endswith("\n")):
            if line.endswith("\n"):
                line = ""  # a message
            if time.monotonic() > until:
                raise Trouble("sluice does not print its totals")
            line += log.readline() or time.sleep(0.002) or ""
    return json.loads(line)


class Counted:
    """Begins to count when it is made; since() tells what was counted."""

    def __init__(self, testbed):
        self.testbed, (self.pid,) = testbed, testbed.forwarder.pids()
        self.was = self._look()

    def _look(self):
        now = totals(self.testbed, self.pid)
        calls, moved = now["calls"].values(), now["bytes"]
        return {"calls": sum(c["calls"] for c in calls), "moved": sum(c["bytes"] for c in calls),
                "delivered": moved["delivered"], "by_pipe": moved["by_pipe"], "switches": switches(self.pid)}

    def since(self):
        """Return: calls that move bytes, the bytes that they moved (twice what was forwarded: in and out), bytes
        that were delivered, those of them that went by pipe, switches."""
        now = self._look()
        return {k: now[k] - self.was[k] for k in now}
