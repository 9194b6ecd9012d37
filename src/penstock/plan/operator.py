"""The logical operators: frozen records of what to compute, each with the schema of its output.

Operators refer to their inputs directly, so a query is a directed acyclic graph of such records. Two consumers of
one record share its work. Identity, not equality, makes a node: `Plan` gives each a stable id.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

from penstock.pattern.feedback import Switches

if TYPE_CHECKING:
    from penstock.pattern.schema import Schema


#: Where an operator stands in a plan: events come from outside, or leave it there, or neither.
Role = Literal["source", "inner", "sink"]


@dataclass(frozen=True, eq=False)
class Operator:
    """One node of a plan."""

    inputs: tuple[Operator, ...]
    schema: Schema
    switches: Switches = field(default=Switches(), kw_only=True)
    #: The name that a user has given it; it is its id then.
    label: str = field(default="", kw_only=True)

    role: ClassVar[Role] = "inner"
    #: What its ids begin with, if not with the name of its class; and, if that is another, the word of the builder.
    kind: ClassVar[str] = "operator"
    word: ClassVar[str] = "operator"
    #: Whether the same event always becomes the same, however much later it comes.
    steady: ClassVar[bool] = True

    def __init_subclass__(cls) -> None:
        cls.kind = vars(cls).get("kind", cls.__name__.lower())
        cls.word = vars(cls).get("word", cls.kind)

    @property
    def detail(self) -> str:
        """What this operator does, in a few words, for `explain`."""
        return ""

    @property
    def meaning(self) -> str:
        """What decides its results, however it was written."""
        return self.detail

    def for_tasks(self) -> Operator:
        """The record fit for travel: without what only the driver can do anything with."""
        return self
