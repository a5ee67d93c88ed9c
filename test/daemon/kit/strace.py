# SPDX-License-Identifier: MIT
"""System calls of the program made to fail from outside, by strace(1)."""
import os
import re
import shutil
import subprocess

from .proc import wait_for
from .tap import Skip

# splice(10<TCP:[...]>, NULL, 12<pipe:[...]>, ...: a socket first is a fill, a pipe first is a drain.
_SPLICE = re.compile(r"splice\(\d+<(\w+).*?, NULL, \d+<(\w+).*\) += (-?\d+)(.*)$")
_UNFINISHED, _RESUMED = " <unfinished ...>", re.compile(r"<\.\.\. \w+ resumed>(.*)")
_works = None


def need_strace():
    global _works
    if _works is None:
        strace = shutil.which("strace")
        _works = bool(strace) and not subprocess.run(
            [strace, "-D", "-f", "--seccomp-bpf", "-o", "/dev/null", "-e", "trace=splice",
             "-e", "inject=splice:error=EINVAL:when=1", "true"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
    if not _works:
        raise Skip("strace cannot trace here, or is too old" if shutil.which("strace") else "strace is not installed")


class Strace:
    """Words to put before the program, and what strace saw of it.

    The program stays our child (-D). Counting for when= is each thread's own.
    """

    def __init__(self, t, *inject, trace="splice"):
        need_strace()
        self.log = os.path.join(t.folder(), "strace")
        self.wrap = ["strace", "-D", "-f", "--seccomp-bpf", "-y", "-o", self.log, "-e", "trace=" + trace]
        for what in inject:
            self.wrap += ["-e", "inject=" + what]

    def lines(self):
        """A call that another thread's came in between of is written in two parts: here it is one line, at its end."""
        lines, begun = [], {}
        with open(self.log, errors="replace") as f:
            for line in f:
                thread, _, text = line.strip().partition(" ")
                text = text.lstrip()
                if text.endswith(_UNFINISHED):
                    begun[thread] = text[:-len(_UNFINISHED)]
                    continue
                resumed = _RESUMED.match(text)
                lines.append(f"{thread} {begun.pop(thread, '') + resumed[1] if resumed else text}")
        return lines

    def splices(self):
        """Of each splice(2) call: ("fill" or "drain", result, whether it was made to fail)."""
        found = [m for m in map(_SPLICE.search, self.lines()) if m]
        return [("drain" if m[1] == "pipe" else "fill", int(m[3]), "INJECTED" in m[4]) for m in found]


class Attached:
    """The same for a program that runs already; counting begins here."""

    def __init__(self, t, sluice, *inject, trace):
        need_strace()
        tasks = len(os.listdir(f"/proc/{sluice.pid}/task"))
        log = os.path.join(t.folder(), "strace")
        args = ["strace", "-f", "-o", log, "-p", str(sluice.pid), "-e", "trace=" + trace]
        for what in inject:
            args += ["-e", "inject=" + what]
        self.process = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        t.keep(self)
        if not wait_for(lambda: self.process.poll() is not None or _traced(sluice.pid) == tasks):
            raise Skip("strace does not attach")
        if self.process.poll() is not None:
            raise Skip("strace may not attach to a process here")

    def close(self):
        if self.process.poll() is None:
            self.process.terminate()  # it lets go of the program first
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def _traced(pid):
    """How many of its threads are being traced."""
    n = 0
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/status") as f:
            n += any(line.startswith("TracerPid:") and line.split()[1] != "0" for line in f)
    return n
