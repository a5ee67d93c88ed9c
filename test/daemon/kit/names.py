# SPDX-License-Identifier: MIT
"""Names that the test makes up: an /etc/hosts of the program's own, and a DNS server."""
import os
import socket
import struct
import threading

from .netns import netns
from .tap import Skip

TYPE_A, TYPE_AAAA = 1, 28
SERVFAIL, NXDOMAIN = 2, 3


def _need_mounts():
    if os.geteuid() != 0:
        raise Skip("only root can give it an /etc of its own")
    if why := netns.refused(netns.unshared(mounts=True)):
        raise Skip(f"no mount namespaces here: {why}")


def _with_files(t, texts):
    """Words before the program, so that it has these files in /etc of its own."""
    _need_mounts()
    words, script = [], ""
    for n, (name, text) in enumerate(texts.items()):
        path = t.file(text, name)
        os.chmod(path, 0o644)
        words.append(path)
        script += f'mount --bind "${n}" /etc/{name} && '
    script += f'shift {len(words) - 1} && exec "$@"'
    return [*netns.unshared(mounts=True), "sh", "-c", script] + words


def with_hosts(t, text):
    return _with_files(t, {"hosts": text})


class Dns:
    """A DNS server, at an address of its own; answers as @mode says.

    @mode:	"silent", "fail" (SERVFAIL), "unknown" (NXDOMAIN) or an IPv4 address
    """

    def __init__(self, t, mode):
        _need_mounts()
        self.mode = mode
        self.asked = 0
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._host = f"127.53.{os.getpid() >> 8 & 255}.{os.getpid() & 255 or 1}"
        try:
            self._socket.bind((self._host, 53))
        except OSError as e:
            self._socket.close()
            raise Skip(f"no DNS server at {self._host}: {e}") from None
        t.keep(self)
        threading.Thread(target=self._serve, daemon=True).start()

    def wrap(self, t, options="timeout:1 attempts:1"):
        """Words before a program that is to ask it."""
        files = {"resolv.conf": f"nameserver {self._host}\n", "nsswitch.conf": "hosts: files dns\n"}
        return _with_files(t, files) + ["env", "RES_OPTIONS=" + options]

    def _serve(self):
        while True:
            try:
                query, who = self._socket.recvfrom(2000)
            except OSError:
                return
            if not query:
                return
            self.asked += 1
            answer = self._answer(query)
            if answer:
                self._socket.sendto(answer, who)

    def _answer(self, query):
        if self.mode == "silent":
            return None
        end = 12
        while query[end]:
            end += query[end] + 1
        question = query[12:end + 5]
        kind = struct.unpack(">H", query[end + 1:end + 3])[0]
        code = {"fail": SERVFAIL, "unknown": NXDOMAIN}.get(self.mode, 0)
        record = b""
        if not code and kind == TYPE_A:
            record = b"\xc0\x0c" + struct.pack(">HHIH", TYPE_A, 1, 1, 4) + socket.inet_aton(self.mode)
        return query[:2] + struct.pack(">HHHHH", 0x8180 | code, 1, bool(record), 0, 0) + question + record

    def close(self):
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._socket.close()
