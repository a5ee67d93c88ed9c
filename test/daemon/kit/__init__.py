# SPDX-License-Identifier: MIT
"""What the tests of the program share: one import brings it all."""
import sys

from . import proc
from .peers import (KIB, MIB, Backend, Echo, FullBacklog, Job, Nobody, connect, end_of, exchange, half_close,
                    has_ipv6, receive, receive_to_end, reset, send, send_until_full, told)
from .stamp import Reader, stamp
from .tap import EACH_MODE, MODES, Fail, Skip, check, equal, need_ipv6, run, test, uring_is_built, ways

__all__ = [name for name in dir(sys.modules[__name__]) if not name.startswith("_") and name != "sys"]
