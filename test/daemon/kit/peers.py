# SPDX-License-Identifier: MIT
"""Clients and backends: plain sockets, none of which waits for ever."""
import socket
import struct
import threading
import time

from .proc import PATIENCE_S
from .stamp import Reader, stamp

KIB, MIB = 1 << 10, 1 << 20
CHUNK = 256 * KIB


class Backend:
    """A listening socket, on a free port of 127.0.0.1 unless told otherwise."""

    def __init__(self, host="127.0.0.1", port=0, backlog=1024, options=()):
        self.socket = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if ":" in host:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        for level, name, value in options:
            self.socket.setsockopt(level, name, value)
        self.socket.bind((host, port))
        self.socket.listen(backlog)
        self.socket.settimeout(PATIENCE_S)
        self.addr = self.socket.getsockname()[:2]

    def accept(self, within=PATIENCE_S):
        self.socket.settimeout(within)
        s, _ = self.socket.accept()
        s.settimeout(PATIENCE_S)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return s

    def close(self):
        self.socket.close()


def has_ipv6():
    try:
        Backend(host="::1").close()
        return True
    except OSError:
        return False


class Nobody:
    """An address where nobody listens, kept from others: connects to it are refused."""

    def __init__(self):
        self.socket = socket.socket()
        self.socket.bind(("127.0.0.1", 0))
        self.addr = self.socket.getsockname()

    def close(self):
        self.socket.close()


class FullBacklog(Backend):
    """A backend whose queue is full: connects to it stay under way."""

    def __init__(self):
        super().__init__(backlog=0)
        self.fillers = []
        for _ in range(4):
            s = socket.socket()
            s.setblocking(False)
            s.connect_ex(self.addr)
            self.fillers.append(s)
        time.sleep(0.05)

    def make_room(self):
        """From now on it accepts; a client's SYN is sent again after a second."""
        for s in self.fillers:
            s.close()
        self.socket.listen(64)

    def close(self):
        for s in self.fillers:
            s.close()
        super().close()


class Echo(Backend):
    """Answers each connection with what it says, to its end; in threads."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.served = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                s = self.accept(None)
            except OSError:
                return
            self.served += 1
            threading.Thread(target=self._echo, args=(s,), daemon=True).start()

    @staticmethod
    def _echo(s):
        with s:
            s.settimeout(None)
            try:
                while True:
                    data = s.recv(CHUNK)
                    if not data:
                        return
                    s.sendall(data)
            except OSError:
                pass

    def close(self):
        try:
            self.socket.shutdown(socket.SHUT_RDWR)  # wakes the thread in accept
        except OSError:
            pass
        super().close()


def connect(where, rcvbuf=None, sndbuf=None, maxseg=None, timeout=PATIENCE_S):
    """A client of @where: something with .addr, or an address."""
    addr = getattr(where, "addr", where)
    s = socket.socket(socket.AF_INET6 if ":" in addr[0] else socket.AF_INET)
    s.settimeout(timeout)
    if rcvbuf:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
    if sndbuf:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, sndbuf)
    if maxseg:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, maxseg)
    try:
        s.connect(addr)
    except BaseException:
        s.close()
        raise
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


def send(s, stream, size, start=0, chunk=CHUNK, pause=0.0):
    """Sends @size bytes of a stamped stream."""
    end = start + size
    while start < end:
        n = min(chunk, end - start)
        s.sendall(stamp(stream, start, n))
        start += n
        if pause:
            time.sleep(pause)


def send_until_full(s, stream, most=64 * MIB, quiet=0.15):
    """Sends until nothing has moved for a while. Return: how many bytes it took."""
    sent = refused = 0
    s.setblocking(False)
    while sent < most and refused < quiet / 0.01:
        try:
            sent += s.send(stamp(stream, sent, min(CHUNK, most - sent)))
            refused = 0
        except BlockingIOError:
            refused += 1
            time.sleep(0.01)
    s.settimeout(PATIENCE_S)
    return sent


def receive(s, stream, size, start=0):
    """Reads @size stamped bytes, and no end before them."""
    reader = Reader(stream)
    reader.got = start
    while reader.got < start + size:
        data = s.recv(min(CHUNK, start + size - reader.got))
        if not data:
            raise AssertionError(f"stream {stream} ends after {reader.got} of {start + size} bytes")
        reader.feed(data)


def receive_to_end(s, stream, start=0):
    """Reads stamped bytes to their end. Return: ("FIN" or "RST", bytes)."""
    reader = Reader(stream)
    reader.got = start
    while True:
        try:
            data = s.recv(CHUNK)
        except ConnectionResetError:
            return "RST", reader.got
        if not data:
            return "FIN", reader.got
        reader.feed(data)


def end_of(s):
    """How @s ends, with nothing more said on it: "FIN" or "RST"."""
    try:
        data = s.recv(100)
    except (ConnectionResetError, BrokenPipeError):
        return "RST"
    if data:
        raise AssertionError(f"{len(data)} bytes where the end should be: {data[:20]!r}")
    return "FIN"


def told(where):
    """What a client of @where is told that should get no byte: "FIN" or "RST"."""
    try:
        with connect(where) as s:
            return end_of(s)
    except ConnectionResetError:
        return "RST"


def reset(s):
    """Closes with a RST."""
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()


def half_close(s):
    s.shutdown(socket.SHUT_WR)


def exchange(client, server, stream, size):
    """@size bytes each way, one after the other."""
    for a, b, which in ((client, server, 2 * stream), (server, client, 2 * stream + 1)):
        job = Job(send, a, which, size)
        receive(b, which, size)
        job.result()


class Job:
    """A function in a thread of its own; result() gives what it returned or raised."""

    def __init__(self, fn, *args, **kwargs):
        self._value = self._error = None

        def work():
            try:
                self._value = fn(*args, **kwargs)
            except BaseException as e:
                self._error = e
        self._thread = threading.Thread(target=work, daemon=True)
        self._thread.start()

    def running(self):
        return self._thread.is_alive()

    def result(self, within=60):
        self._thread.join(within)
        if self._thread.is_alive():
            raise AssertionError(f"a peer is still at work {within} s later")
        if self._error:
            raise self._error
        return self._value
