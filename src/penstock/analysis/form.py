"""Forms of punctuation: what is known of punctuations before there are any."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

#: "up to" grows with the stream, "value" comes value by value, "bounds" is said once at the start and releases nothing.
Class = Literal["up to", "value", "bounds"]

_TEXTS: dict[Class, str] = {"up to": "{} up to", "value": "{}: each value", "bounds": "{} outside its bounds"}


@dataclass(frozen=True)
class Form:
    """Punctuations that look alike: how each attribute is restricted. Without any it is the end of the stream.

    A form that is `open` comes from the data: anything may be promised there.

    >>> print(Form((("ts", "up to"), ("sensor", "value"))), "|", Form())
    ts up to + sensor: each value | everything, at the end
    """

    parts: tuple[tuple[str, Class], ...] = ()
    open: bool = False

    @property
    def attributes(self) -> dict[str, Class]:
        return dict(self.parts)

    @property
    def ends(self) -> bool:
        """Whether it says that the stream is over."""
        return not self.parts and not self.open

    @property
    def releases(self) -> bool:
        """Whether it can release anything while the stream goes on."""
        return self.open or bool(self.parts and all(c != "bounds" for _, c in self.parts))

    def on(self, names: Mapping[str, str]) -> Form | None:
        """The form on attributes under other names, None if one has none."""
        if not all(n in names for n, _ in self.parts):
            return None
        return Form(tuple((names[n], c) for n, c in self.parts), self.open)

    def __str__(self) -> str:
        if self.open:
            return "what the data says"
        return " + ".join(_TEXTS[c].format(n) for n, c in self.parts) or "everything, at the end"


Forms = tuple[Form, ...]
