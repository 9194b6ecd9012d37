"""Places in a plan, where events can be dropped and state is kept: one type, which is also its text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_GROUPS = ":groups"
#: Before the name of a stream; a stream may be called groups.
_SOURCE = "source"


class Place(str):
    """What leaves an operator (`select-1`), what reaches an input of it (`join-1#0`), or the groups that it forms.

    It is a text, so it goes into records and names of files as it is; what it consists of is asked of it here alone.

    >>> join, groups = Place.at("join-1", 0), Place.of_groups("aggregate-1")
    >>> (join, join.node, join.port), (groups, groups.node, groups.part)
    (('join-1#0', 'join-1', 0), ('aggregate-1:groups', 'aggregate-1', 'groups'))
    >>> Place("source:groups").node
    'source:groups'
    """

    __slots__ = ()

    @classmethod
    def at(cls, node: str, port: int) -> Place:
        """What reaches an input."""
        return cls(f"{node}#{port}")

    @classmethod
    def of_groups(cls, node: str) -> Place:
        """The groups that an operator forms."""
        return cls(node + _GROUPS)

    @classmethod
    def stored(cls, node: str, port: int, ports: int) -> Place:
        """Under which the state of one of several inputs is filed; that of an only one under the operator itself."""
        return cls(node) if ports == 1 else cls.at(node, port)

    @property
    def node(self) -> str:
        """The operator."""
        if self.part:
            return self.removesuffix(_GROUPS)
        return self.rpartition("#")[0] or str(self)

    @property
    def port(self) -> int | None:
        """The input; None if it is not about one."""
        _, there, port = self.rpartition("#")
        return int(port) if there else None

    @property
    def part(self) -> str:
        """`groups` of an operator that forms some, or nothing."""
        return _GROUPS[1:] if self.endswith(_GROUPS) and self != _SOURCE + _GROUPS else ""

    def speaker(self, inputs: Mapping[str, Sequence[str]]) -> str:
        """The operator behind which the events of this place are, given the inputs of all operators by name."""
        return self.node if self.port is None else inputs[self.node][self.port]
