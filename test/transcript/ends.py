# SPDX-License-Identifier: MIT
"""One end of a connection: does what a script says, and tells what it saw."""
import array
import errno
import fcntl
import os
import select
import socket
import termios
import threading
import time

from kit import Reader, reset, stamp

PATIENCE_S = 6  # for what must come
STUCK_S = 0.08   # a flood of which nothing is taken for so long is stuck
CHUNK = 1 << 18
SIOCATMARK = getattr(termios, "SIOCATMARK", 0x8905)
STATES = ("?", "ESTABLISHED", "SYN_SENT", "SYN_RECV", "FIN_WAIT1", "FIN_WAIT", "TIME_WAIT", "CLOSE", "CLOSE_WAIT",
          "LAST_ACK", "LISTEN", "CLOSING")
FIN_WAIT = {4: 5}  # which of the two it is, is the other kernel's delayed acknowledgement
FLAGS = ((select.POLLIN, "IN"), (select.POLLPRI, "PRI"), (select.POLLRDHUP, "RDHUP"), (select.POLLHUP, "HUP"),
         (select.POLLERR, "ERR"))


class Wrong(AssertionError):
    """Bytes that nobody has sent here, or none where there must be some."""


def _error(e):
    return errno.errorcode.get(e.errno, str(e))


class End:
    """@says, @hears: the streams of both directions, as stamps tell them apart.

    @other:	the other end, if there is one yet
    @shouted:	where in what it says the last urgent byte stands
    """

    def __init__(self, sock, says, hears):
        self.sock, self.says, self.reader = sock, says, Reader(hears)
        self.sent, self.inline, self.flood = 0, False, None
        self.other, self.shouted = None, None
        sock.settimeout(PATIENCE_S)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._poll, self._input = select.poll(), select.poll()
        self._poll.register(sock, select.POLLIN | select.POLLPRI | select.POLLRDHUP)
        self._input.register(sock, select.POLLIN)
        self._number = array.array("i", [0])

    def _ask(self, request):
        fcntl.ioctl(self.sock, request, self._number)
        return self._number[0]

    def look(self):
        """All that can be seen of this end without touching it; None once it is closed."""
        if not self.sock:
            return None
        ready = self._poll.poll(0)
        state = self.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
        return (FIN_WAIT.get(state, state), self._ask(termios.FIONREAD), ready[0][1] if ready else 0,
                self._ask(SIOCATMARK))

    def do(self, step):
        """Return: what it came to, in words."""
        if not self.sock:
            raise ValueError("this end is closed")
        return getattr(self, "do_" + step.what)(step.much)

    def _send(self, n, flags=0):
        try:
            while n:
                k = self.sock.send(stamp(self.says, self.sent, min(n, CHUNK)), flags)
                self.sent += k
                n -= k
        except OSError as e:
            return _error(e)
        return "ok"

    def do_say(self, n):
        return self._send(1 + int.from_bytes(os.urandom(2), "big") % 16000 if n == "some" else n)

    def do_shout(self, _):
        over = self.other and self.other._at_mark()
        self.shouted = self.sent
        result = self._send(1, socket.MSG_OOB)
        if over and result == "ok":
            self.other.reader.got += 1  # there is room for one: the kernel drops the one that is next to be read
        return result

    def do_inline(self, _):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
        self.inline = True
        return "ok"

    def do_catch(self, _):
        """The urgent byte, which is the stream's byte at the mark."""
        self.sock.setblocking(False)  # or Python would wait for ordinary bytes first
        try:
            byte = self.sock.recv(1, socket.MSG_OOB)
        except OSError as e:
            return _error(e)
        finally:
            self.sock.settimeout(PATIENCE_S)
        if byte and byte != stamp(self.reader.stream, self.other.shouted, 1):
            raise Wrong(f"the urgent byte is {byte.hex()}")
        return "it" if byte else "nothing"

    def _at_mark(self):
        """Whether an urgent byte is next that reading steps over, since it is not inline."""
        return bool(self.sock and not self.inline and self._ask(SIOCATMARK))

    def _hear(self, want):
        """Receives up to @want bytes. Yields what it saw, in words; a number is one of bytes."""
        while want:
            if not self._input.poll(PATIENCE_S * 1000):
                raise Wrong(f"nothing comes any more after byte {self.reader.got}")
            if self._ask(SIOCATMARK):
                yield "urgent"
            over = self._at_mark()
            data = self.sock.recv(min(CHUNK, want))
            if not data:
                yield "FIN"
                return
            self.reader.got += over
            try:
                self.reader.feed(data)
            except AssertionError as e:
                raise Wrong(str(e)) from None
            yield len(data)
            want -= len(data)

    def do_hear(self, n):
        """How many bytes, where urgent ones were, and with what end."""
        count, seen = 0, []
        try:
            for what in self._hear(n if isinstance(n, int) else 1 << 62):
                if isinstance(what, int):
                    count += what
                else:
                    seen.append(what if n == "rest" else f"{what} after {count}")
        except OSError as e:
            seen.append(_error(e))
        return ", ".join(([] if n == "rest" else [f"{count} bytes"]) + seen)

    def do_fin(self, _):
        try:
            self.sock.shutdown(socket.SHUT_WR)
        except OSError as e:
            return _error(e)
        return "ok"

    def do_close(self, _):
        self._end_flood()
        self.sock.close()
        self.sock = None
        return "ok"

    def do_reset(self, _):
        self._end_flood()
        reset(self.sock)
        self.sock = None
        return "ok"

    def do_pour(self, n):
        self.flood = Flood(self, n)
        return "ok"

    def do_stuck(self, _):
        self.flood.wait_until_stuck()
        return "ok"

    def do_poured(self, _):
        return self.flood.wait()

    def _end_flood(self):
        if self.flood:
            self.flood.stop()

    def dispose(self):
        """Whatever has happened: nothing is left."""
        if self.sock:
            self.do_close(None)


class Flood:
    """Sends in a thread of its own, for a reader who may not read."""

    def __init__(self, end, size):
        self._end, self._left, self._stopped, self._result = end, size, False, "all"
        self._poll = select.poll()
        self._poll.register(end.sock, select.POLLOUT)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        e = self._end
        try:
            while self._left and not self._stopped:
                if not self._poll.poll(20):
                    continue
                k = e.sock.send(stamp(e.says, e.sent, min(self._left, CHUNK)), socket.MSG_DONTWAIT)
                e.sent += k
                self._left -= k
        except BlockingIOError:
            self._run()
        except OSError as error:
            self._result = _error(error)

    def wait_until_stuck(self):
        """Until no more of it is taken, or all is."""
        before, until = None, now() + PATIENCE_S
        while self._left and self._left != before and now() < until:
            before = self._left
            time.sleep(STUCK_S)

    def wait(self):
        self._thread.join(PATIENCE_S)
        if self._thread.is_alive():
            raise Wrong(f"{self._left} bytes are not taken")
        return self._result

    def stop(self):
        self._stopped = True
        self._thread.join()


def words(look):
    """A look, for people."""
    if not look:
        return "closed"
    state, unread, flags, mark = look
    return " ".join([STATES[state], f"{unread} unread"] + [name for bit, name in FLAGS if flags & bit] +
                    (["at the mark"] if mark else []))


def now():
    return time.monotonic()
