#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Four workers, 200 connections at a time, SIGUSR1 at 100 Hz, SIGTERM under load; by io_uring too, if it is there.

In a build with ThreadSanitizer every data race that this provokes ends the
program with TSan's own exit status; in any build the content and the totals
are checked.
"""
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "daemon"))

from kit import EACH_MODE, stamp  # noqa: E402

WAYS = [["--mode=auto"]]
if "uring" in EACH_MODE:
    WAYS.append(["--mode=uring"])
CONNECTIONS, BYTES, SECONDS = 200, 40000, 4


PAYLOAD = [stamp(k, 0, BYTES) for k in range(8)]


def echo_server(listener, stop):
    """Sends back what comes, and FIN after FIN."""
    poll, conns = select.epoll(), {}
    listener.setblocking(False)
    poll.register(listener, select.EPOLLIN)
    while not stop.is_set():
        for fd, _ in poll.poll(0.1):
            if fd == listener.fileno():
                try:
                    c = listener.accept()[0]
                except OSError:
                    continue
                poll.register(c, select.EPOLLIN)
                conns[c.fileno()] = c
                continue
            c = conns[fd]
            try:
                data = c.recv(65536)
                c.settimeout(5)
                if data:
                    c.sendall(data)
            except OSError:
                data = b""
            if not data:
                poll.unregister(fd)
                conns.pop(fd).close()


class Client(threading.Thread):
    """Connects again and again; `clean` counts exchanges that were complete."""

    def __init__(self, port, k, stop):
        super().__init__(daemon=True)
        self.port, self.payload, self.stop = port, PAYLOAD[k % len(PAYLOAD)], stop
        self.abort, self.clean, self.wrong = k % 5 == 0, 0, None

    def run(self):
        while not self.stop.is_set() and not self.wrong:
            try:
                with socket.create_connection(("127.0.0.1", self.port), 5) as s:
                    self.exchange(s)
            except OSError:
                time.sleep(0.05)

    def exchange(self, s):
        got = b""
        s.sendall(self.payload)
        if self.abort:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            return
        s.shutdown(socket.SHUT_WR)
        while True:
            data = s.recv(65536)
            if not data:
                break
            got += data
        if got != self.payload:
            self.wrong = f"{len(got)} of {BYTES} bytes, " + \
                ("a prefix, then EOF" if self.payload.startswith(got) else "not what was sent")
        self.clean += 1


def start(binary, way, target):
    p = subprocess.Popen([binary, *way, "--workers=4", "--stats=json", "--drain-timeout=1s", "127.0.0.1:0", target],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    port = None
    while True:
        line = p.stderr.readline()
        m = re.match(r"sluice: 127\.0\.0\.1:(\d+) ->", line)
        port = int(m.group(1)) if m else port
        if "ready:" in line:
            return p, port
        if not line:
            sys.exit(f"Bail out! sluice did not start: {p.wait()}")


def run(binary, way):
    """Everything at once. Returns what went wrong, or None."""
    stop, done = threading.Event(), threading.Event()
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    echo = threading.Thread(target=echo_server, args=(listener, done), daemon=True)
    echo.start()
    p, port = start(binary, way, "127.0.0.1:%d" % listener.getsockname()[1])
    out, err = [], []
    readers = [threading.Thread(target=lambda f, to: to.extend(f), args=a) for a in ((p.stdout, out), (p.stderr, err))]
    clients = [Client(port, k, stop) for k in range(CONNECTIONS)]
    for t in readers + clients:
        t.start()
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        os.kill(p.pid, signal.SIGUSR1)
        time.sleep(0.01)
    p.send_signal(signal.SIGTERM)
    try:
        status = p.wait(30)
    except subprocess.TimeoutExpired:
        p.kill()
        status = "hung"
    stop.set()
    for t in readers + clients:
        t.join(20)
    done.set()
    echo.join(5)
    wrong = [c.wrong for c in clients if c.wrong]
    if status or any("Sanitizer" in line for line in err):
        return f"exit status {status}: " + " | ".join(x.strip() for x in err[:40])
    if wrong:
        return f"{len(wrong)} clients: {wrong[0]}"
    if not sum(c.clean for c in clients):
        return "not a single exchange was complete"
    totals = json.loads(out[-1])
    if totals["bytes"]["read"] != totals["bytes"]["delivered"] + totals["bytes"]["dropped"]:
        return f"the totals do not add up: {totals['bytes']}"
    print(f"# {sum(c.clean for c in clients)} exchanges, {totals['connections']['accepted']} connections, "
          f"{len(out)} reports")
    return None


def main():
    bad = 0
    print(f"1..{len(WAYS)}")
    for n, way in enumerate(WAYS, 1):
        why = run(sys.argv[1], way)
        print(f"{'not ok' if why else 'ok'} {n} - four workers, 200 connections, SIGUSR1 at 100 Hz, SIGTERM under load "
              f"[{' '.join(way)}]")
        if why:
            print("# " + why)
        bad += bool(why)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
