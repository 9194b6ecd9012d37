"""What an operator does about an assumed feedback, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.pattern.pattern import Pattern


@dataclass(frozen=True)
class Response:
    """The answer of one operator to `not pattern`. Doing none of it is always allowed.

    `output`: drop matching results (an output guard with the pattern itself). `inputs`: per input the pattern of the
    events that may be dropped on arrival (an input guard), None for none. `purge`: also remove what is stored of
    these: matching rows, or for an aggregate matching groups. `groups`: for an aggregate, the pattern over its groups
    (its output schema) whose partial results are removed and not formed again. `send`: per input the patterns to pass
    on upstream, over the schema of that input. `pinned`: what was purged or withheld must not be formed again, in
    part, from later events, so the guards stay until punctuation covers them, and nothing is passed on without them.
    `sweep`: some groups are doomed already, whatever comes: find those whose present value matches. `anew`: what it
    says of the input depends on a table, and is asked for and passed on in each epoch. `why` says, for people, why it
    goes no further (empty where it goes on everywhere).
    """

    output: bool = False
    inputs: tuple[Pattern | None, ...] = ()
    send: tuple[tuple[Pattern, ...], ...] = ()
    purge: bool = False
    groups: Pattern | None = None
    pinned: bool = False
    sweep: bool = False
    anew: bool = False
    why: str = ""

    @property
    def has_state(self) -> bool:
        """Whether the operator has stored, or will store, what the pattern speaks of: it must be kept here first."""
        return self.purge or self.pinned or self.groups is not None or self.sweep

    @property
    def summary(self) -> str:
        """For people: what the operator does."""
        parts = [
            *(["drops results"] if self.output else []),
            *(["drops what arrives"] if any(p is not None for p in self.inputs) or self.groups else []),
            *(["purges state"] if self.purge or self.groups is not None else []),
            *(["passes it on"] if any(self.send) else []),
            *(["passes on the keys that match in each epoch"] if self.anew else []),
        ]
        return ", ".join(parts) or "nothing"
