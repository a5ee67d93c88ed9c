# SPDX-License-Identifier: MIT
"""What one test has: sluices, peers, files. All end with it."""
import contextlib
import os
import shutil
import tempfile

from . import peers
from .sluice import Sluice


class Context:
    def __init__(self, binary, way):
        self.binary = binary
        self.way = way
        self.sluices = []
        self._public = None
        self._stack = contextlib.ExitStack()

    def keep(self, thing):
        """Has @thing closed at the end. Return: @thing."""
        self._stack.callback(thing.close)
        return thing

    def later(self, fn, *args):
        self._stack.callback(fn, *args)

    def folder(self):
        """A folder that any user may look into; gone at the end."""
        path = tempfile.mkdtemp(prefix="sluice-test-")
        os.chmod(path, 0o755)
        self.later(shutil.rmtree, path, True)
        return path

    def file(self, content, name="rules.conf"):
        path = os.path.join(self.folder(), name)
        with open(path, "wb") as f:
            f.write(content if isinstance(content, bytes) else content.encode())
        return path

    def public_binary(self):
        """A copy of the program that every user may run, wherever the build is: in root's home, say."""
        if not self._public:
            self._public = os.path.join(self.folder(), "sluice")
            shutil.copy(self.binary, self._public)
            os.chmod(self._public, 0o755)
        return self._public

    def sluice(self, *args, **kwargs):
        """Starts one, with the options of this way of running the test. See Sluice."""
        options = [f"--{name}={value}" for name, value in self.way.items()]
        binary = self.binary if kwargs.get("user") is None else self.public_binary()
        s = Sluice(binary, options + [str(a) for a in args], **kwargs)
        self.sluices.append(self.keep(s))
        s.begin()
        return s

    def forward(self, target, *args, **kwargs):
        """Starts one that forwards a free port of 127.0.0.1 to @target."""
        return self.sluice(*args, "127.0.0.1:0", _address(target), **kwargs)

    def backend(self, **kwargs):
        return self.keep(peers.Backend(**kwargs))

    def connect(self, where, **kwargs):
        return self.keep(peers.connect(where, **kwargs))

    def pair(self, where, backend, **kwargs):
        """A client of @where, and the socket that @backend accepts for it."""
        client = self.connect(where, **kwargs)
        return client, self.keep(backend.accept())

    def pairs(self, where, backend, n, **kwargs):
        return [self.pair(where, backend, **kwargs) for _ in range(n)]

    def end_well(self):
        """At the end of a test that went well: so must all that still runs."""
        for s in self.sluices:
            s.end_well()

    def story(self):
        """What the sluices said, for the report of a failure."""
        return "\n".join(s.story() for s in self.sluices[-3:])

    def close(self):
        self._stack.close()


def _address(target):
    return target if isinstance(target, str) else "%s:%d" % target.addr[:2]
