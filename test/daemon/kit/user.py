# SPDX-License-Identifier: MIT
"""An ordinary user to run as, whom nobody else is: the quota of pipes is by user."""
import fcntl
import os
import subprocess

from .tap import Skip

F_SETPIPE_SZ, F_GETPIPE_SZ = 1031, 1032


def spare_user():
    """A uid that no other process has."""
    if os.geteuid() != 0:
        raise Skip("only root can run it as a user that nobody else is")
    user = 200000 + os.getpid()
    if subprocess.run(["true"], user=user, group=user, extra_groups=[], check=False).returncode:
        raise Skip("no spare user here")
    return user


def _fork_as(user, fn):
    """Runs fn() in a process of that user. Return: its process id."""
    pid = os.fork()
    if not pid:
        try:
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            fn()
        finally:
            os._exit(0)
    return pid


def largest_pipe(user):
    """Bytes of a pipe that a new program of this user gets, if it asks for all there is."""
    tell, say = os.pipe()

    def try_it():
        w = os.pipe()[1]
        try:
            fcntl.fcntl(w, F_SETPIPE_SZ, pipe_limits()[1])
        except OSError:
            pass
        os.write(say, b"%d" % fcntl.fcntl(w, F_GETPIPE_SZ))
    pid = _fork_as(user, try_it)
    os.close(say)
    with os.fdopen(tell) as f:
        text = f.read()
    os.waitpid(pid, 0)
    return int(text)


def hog_pipes(t, user):
    """Uses up all that this user may have of pipes, until the test ends."""
    full, say_full = os.pipe()
    until, end = os.pipe()

    def hold():
        os.close(end)
        _take_pipes()
        os.write(say_full, b"full")
        os.read(until, 1)
    pid = _fork_as(user, hold)
    os.close(say_full)
    os.close(until)

    def release():
        os.close(full)
        os.close(end)
        os.waitpid(pid, 0)
    t.later(release)
    if os.read(full, 4) != b"full":
        raise Skip("the quota of pipes could not be used up")


def _take_pipes():
    try:
        for _ in range(4000):
            if fcntl.fcntl(os.pipe()[1], F_SETPIPE_SZ, 1 << 20) < 1 << 20:
                return
    except OSError:  # no more
        pass


def pipe_limits():
    """(pages a user may have, the largest pipe): soft quota, or 0 for none."""
    with open("/proc/sys/fs/pipe-user-pages-soft") as soft, open("/proc/sys/fs/pipe-max-size") as most:
        return int(soft.read()), int(most.read())
