"""What Penstock says when something is wrong.

Every error names the thing it is about and, where there is one, the thing to write instead. The command line
prints a `PenstockError` as one line with its hint and exits with code 2; everything else is a defect of ours or of
the machine and keeps its stack trace.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

#: Characters of a message, or of a hint.
_LONGEST = 1_000


class PenstockError(Exception):
    """Base of all errors Penstock raises on purpose.

    >>> print(PenstockError("stream 'traffic': no path", hint="call .read_parquet(path)"))
    stream 'traffic': no path. Hint: call .read_parquet(path)
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = _of_readable_length(message)
        self.hint = None if hint is None else _of_readable_length(hint)

    def __str__(self) -> str:
        return f"{self.message}. Hint: {self.hint}" if self.hint else self.message

    def __reduce__(self) -> tuple[object, ...]:
        # Errors cross process boundaries (worker to driver): keyword-only arguments need help to be pickled.
        return (_rebuild, (type(self), self.message, self.hint))


def _of_readable_length(text: str) -> str:
    """Nobody reads on: what is quoted may be as long as data is."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST * 3 // 4]} … {text[-_LONGEST // 4 :]}"


def _rebuild(kind: type[PenstockError], message: str, hint: str | None) -> PenstockError:
    return kind(message, hint=hint)


class UserError(PenstockError):
    """A mistake in a query, a declaration or a command: fixed by writing something else."""


class SchemaError(UserError):
    """Data that does not have the declared attributes or types (schema drift)."""


class ViolationError(UserError):
    """An event that breaks a promise of its stream, on a stream whose policy is `fail`."""


class FailingError(UserError):
    """An expression that has no answer to a value: a text that is no number, a division by zero, an overflow."""


class OverflowingError(FailingError):
    """A number too large for its type. A wrong number is never delivered instead."""


class UnknownOperatorError(PenstockError):
    """An operator that some part of Penstock was never taught: a defect, and never a reason to guess."""


class CheckpointError(PenstockError):
    """A checkpoint that cannot be used: corrupt, incomplete, locked, or of another plan or version."""


class SourceError(PenstockError):
    """Input that cannot be read: missing, unreadable, or changed while it was read."""


class UnreadableError(SourceError):
    """A file that is there but cannot be read: `stream`, `path`, `size` and `mtime_ns` say which, `why` the cause."""

    def __init__(self, stream: str, path: str, size: int, mtime_ns: int, why: str, *, hint: str | None = None) -> None:
        super().__init__(
            f"stream '{stream}': file '{path}' cannot be read: {why}",
            hint=hint or 'repair it, move it away, or pass it over: read_…(…, on_unreadable="skip")',
        )
        self.stream, self.path, self.size, self.mtime_ns, self.why = stream, path, size, mtime_ns, why

    def __reduce__(self) -> tuple[object, ...]:
        return (_unreadable, (self.stream, self.path, self.size, self.mtime_ns, self.why, self.hint))


def _unreadable(stream: str, path: str, size: int, mtime_ns: int, why: str, hint: str | None) -> UnreadableError:
    return UnreadableError(stream, path, size, mtime_ns, why, hint=hint)


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that looks most like `word`, or None when none comes close.

    >>> nearest("sped", ["ts", "segment", "speed"])
    'speed'
    """
    candidates = sorted(set(known))
    folded = {c.casefold(): c for c in reversed(candidates)}
    found = difflib.get_close_matches(word.casefold(), list(folded), n=1, cutoff=0.5)
    return folded[found[0]] if found else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint for an unknown name: the nearest match, then everything there is.

    >>> did_you_mean("sped", ["ts", "speed"])
    "did you mean 'speed'? There are: ts, speed"
    """
    names = list(known)
    match = nearest(word, names)
    shown = ", ".join(names[:20]) + (", …" if len(names) > 20 else "")
    return (f"did you mean '{match}'? " if match else "") + f"There are: {shown}"


def counted(n: int, one: str, many: str | None = None) -> str:
    """So many of something, in words that fit the number.

    >>> counted(1, "row"), counted(1_234, "row"), counted(0, "entry", "entries")
    ('1 row', '1,234 rows', '0 entries')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def a(noun: str) -> str:
    """A noun with its article, by its sound as far as its letters tell.

    >>> a("int"), a("string"), a("unsigned int"), a("NoneType")
    ('an int', 'a string', 'an unsigned int', 'a NoneType')
    """
    return f"{'an' if noun[:1].lower() in tuple('aeio') or noun.startswith('un') else 'a'} {noun}"


def encodable(text: str) -> bool:
    """Whether a text can be written at all: half of a surrogate pair has no bytes in any encoding.

    >>> encodable("straße 🚗"), encodable("\\ud83d")
    (True, False)
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def shortly(value: object, most: int = 80) -> str:
    """A value as Python writes it, cut where it gets long.

    >>> shortly("not [1]"), shortly("x" * 100, 8)
    ("'not [1]'", "'xxxxxx…")
    """
    text = repr(value)
    return text if len(text) <= most else text[: most - 1] + "…"
