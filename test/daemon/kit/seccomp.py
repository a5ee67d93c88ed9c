# SPDX-License-Identifier: MIT
"""seccomp.py CALL ERRNO [ARG=VALUE]... -- PROGRAM: runs a program to which a system call is refused for ever.

With ARG=VALUE, counted from 0, only where all of these arguments are so. Unlike strace it costs no time,
so that what the program does about it can be measured.
"""
import ctypes
import errno
import os
import platform
import struct
import sys

NUMBERS = {
    "x86_64": {"accept4": 288, "socket": 41, "bind": 49, "listen": 50, "setsockopt": 54, "signalfd4": 289,
               "timerfd_create": 283, "epoll_create1": 291, "eventfd2": 290},
    "aarch64": {"accept4": 242, "socket": 198, "bind": 200, "listen": 201, "setsockopt": 208, "signalfd4": 74,
                "timerfd_create": 85, "epoll_create1": 20, "eventfd2": 19},
}.get(platform.machine())
_PR_SET_SECCOMP, _MODE_FILTER, _PR_SET_NO_NEW_PRIVS = 22, 2, 38
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _ERRNO = 0x7fff0000, 0x00050000


def refuse(call, error, **arguments):
    """Words to put before the program: refuse("setsockopt", "EPERM", a1=1, a2=10)."""
    from .tap import Skip
    if not NUMBERS:
        raise Skip(f"no numbers of system calls for {platform.machine()} here")
    return [sys.executable, __file__, call, error] + [f"{a[1:]}={v}" for a, v in arguments.items()] + ["--"]


def _install(call, number, arguments):
    checks = [(0, NUMBERS[call])] + [(16 + 8 * a, v) for a, v in arguments]
    code = b""
    for n, (offset, value) in enumerate(checks):
        to_allow = 2 * (len(checks) - n) - 1
        code += struct.pack("HBBI", _LOAD, 0, 0, offset) + struct.pack("HBBI", _EQUAL, 0, to_allow, value)
    code += struct.pack("HBBI", _RETURN, 0, 0, _ERRNO | number) + struct.pack("HBBI", _RETURN, 0, 0, _ALLOW)
    room = ctypes.create_string_buffer(code)
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(room)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, program, 0, 0):
        sys.exit(f"seccomp: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    at = sys.argv.index("--")
    _install(sys.argv[1], getattr(errno, sys.argv[2]), [tuple(map(int, a.split("="))) for a in sys.argv[3:at]])
    os.execvp(sys.argv[at + 1], sys.argv[at + 1:])
