# SPDX-License-Identifier: MIT
"""Payload in which every eight bytes tell their stream and their place.

So a byte that is lost, repeated, out of order or another stream's is found at
the first word that is not what it should be, and can be named.
"""
import functools

WORD = 8
BLOCK = 1 << 16
_WORDS = BLOCK // WORD
_FIRST = int.from_bytes(b"".join(n.to_bytes(WORD, "little") for n in range(_WORDS)), "little")
_ONES = ((1 << 8 * BLOCK) - 1) // ((1 << 8 * WORD) - 1)  # in every word


@functools.lru_cache(maxsize=512)
def _block(stream, n):
    """All of its words at once, as one number: five times as quick as one by one."""
    return (_FIRST + ((stream + 1 << 40) + n * _WORDS) * _ONES).to_bytes(BLOCK, "little")


def stamp(stream, start, size):
    """@size bytes of @stream from place @start."""
    out = []
    while size:
        n, at = divmod(start, BLOCK)
        piece = _block(stream, n)[at:at + size]
        out.append(piece)
        start += len(piece)
        size -= len(piece)
    return out[0] if len(out) == 1 else b"".join(out)


def _tell(stream, at, got):
    """What is wrong with bytes that are not those of place @at."""
    want = stamp(stream, at, len(got))
    off = next(i for i in range(len(got)) if got[i] != want[i])
    word = (at + off) // WORD * WORD
    if word < at:
        word += WORD
    seen = int.from_bytes(got[word - at:word - at + WORD], "little")
    where = f"byte {at + off} of stream {stream}"
    if seen >> 40 == stream + 1:
        place = (seen & (1 << 40) - 1) * WORD
        return f"{where}: found place {place} there ({'lost' if place > word else 'repeated'})"
    return f"{where}: another stream's or no payload: {got[off:off + 16].hex()}"


class Reader:
    """Is fed a stream and fails at the first wrong byte."""

    def __init__(self, stream):
        self.stream = stream
        self.got = 0

    def feed(self, data):
        if data != stamp(self.stream, self.got, len(data)):
            raise AssertionError(_tell(self.stream, self.got, bytes(data)))
        self.got += len(data)
