# SPDX-License-Identifier: MIT
"""An ordinary user to run as, whom nobody else is: the quota of pipes is by user."""
import fcntl
import os
import shutil
import subprocess

from .tap import Skip

F_SETPIPE_SZ = 1031


def spare_user():
    """A uid that no other process has."""
    if os.geteuid() != 0:
        raise Skip("only root can run it as a user that nobody else is")
    user = 200000 + os.getpid()
    if subprocess.run(["true"], user=user, group=user, extra_groups=[], check=False).returncode:
        raise Skip("no spare user here")
    return user


def public_copy(t, binary):
    """A copy of the program that every user may run, wherever the build is."""
    path = os.path.join(t.folder(), "sluice")
    shutil.copy(binary, path)
    os.chmod(path, 0o755)
    return path


def hog_pipes(t, user):
    """Uses up all that this user may have of pipes, until the test ends."""
    full, say_full = os.pipe()
    until, end = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.close(end)
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            _take_pipes()
            os.write(say_full, b"full")
            os.read(until, 1)
        finally:
            os._exit(0)
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
