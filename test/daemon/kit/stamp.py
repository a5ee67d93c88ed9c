# SPDX-License-Identifier: MIT
"""Stamped bytes, as tools/load/stamp.h describes them: eight of them tell their stream and their position.

A byte that is lost, repeated, out of order or of another stream is found at the first that differs, and is
named. Words are made many at a time, in one number of Python's: ten times as fast as one by one.
"""
import functools

WORD = 8
BLOCK = 1 << 16
_WORDS = BLOCK // WORD
_FACTOR = 0x9e3779b97f4a7c15
_INVERSE = pow(_FACTOR, -1, 1 << 64)
_MASK = (1 << 64) - 1
_INDEX = (1 << 48) - 1


def _row(words):
    """The words as one number, the first lowest."""
    return int.from_bytes(b"".join(w.to_bytes(WORD, "little") for w in words), "little")


def _each(word):
    """The same word as often as a block has words."""
    return int.from_bytes(word.to_bytes(WORD, "little") * _WORDS, "little")


_STEPS = _row(n * _FACTOR & _MASK for n in range(_WORDS))
_TOP = _each(1 << 63)
_BELOW = _each(_MASK >> 1)
_STEPS_TOP, _STEPS_BELOW = _STEPS & _TOP, _STEPS & _BELOW
_LOW_48, _LOW_32 = _each(_INDEX), _each((1 << 32) - 1)


@functools.lru_cache(maxsize=512)
def _block(stream, n):
    """Block @n of a stream. The top bit of each word is added apart, so that no word carries into the next."""
    first = _each(((stream << 48) + n * _WORDS + 1) * _FACTOR & _MASK)
    x = _STEPS_BELOW + (first & _BELOW) ^ _STEPS_TOP ^ first & _TOP
    x ^= x >> 16 & _LOW_48
    x ^= x >> 32 & _LOW_32
    return x.to_bytes(BLOCK, "little")


def stamp(stream, start, size):
    """@size bytes of @stream, which is below 65536, from position @start."""
    out = []
    while size:
        n, at = divmod(start, BLOCK)
        piece = _block(stream, n)[at:at + size]
        out.append(piece)
        start += len(piece)
        size -= len(piece)
    return out[0] if len(out) == 1 else b"".join(out)


def _claim(data):
    """The stream and the position that a word claims."""
    word = int.from_bytes(data, "little")
    x = (word ^ word >> 16) * _INVERSE - 1 & _MASK
    return x >> 48, (x & _INDEX) * WORD


def _tell(stream, at, got):
    """What is wrong with bytes that are not those of position @at."""
    want = stamp(stream, at, len(got))
    off = next(i for i in range(len(got)) if got[i] != want[i])
    where = f"byte {at + off} of stream {stream}"
    for k in range(off, len(got) - 2 * WORD + 1):
        (of, place), then = _claim(got[k:k + WORD]), _claim(got[k + WORD:k + 2 * WORD])
        if then != (of, place + WORD):
            continue
        if of != stream:
            return f"{where}: another stream's: {place} of stream {of}"
        if place == at + k:
            return f"{where}: garbled, and right again from {place}"
        return f"{where}: found place {place} at {at + k} ({'lost' if place > at + k else 'repeated'})"
    return f"{where}: no payload: {got[off:off + 16].hex()}"


class Reader:
    """Is fed a stream and fails at the first wrong byte."""

    def __init__(self, stream):
        self.stream = stream
        self.got = 0

    def feed(self, data):
        if data != stamp(self.stream, self.got, len(data)):
            raise AssertionError(_tell(self.stream, self.got, bytes(data)))
        self.got += len(data)
