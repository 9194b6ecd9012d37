"""Why a plan has no consistent accordance: the operator, the edge, what arrives there and what would be needed."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from accepting import NO_FEEDBACK, Feedback
from contracts import Contract

from penstock.contract.template import Scheme

Node = Hashable


@dataclass(frozen=True)
class Edge:
    """From an output of one operator to an input of another."""

    source: Node
    target: Node
    output: int = 0
    input: int = 0


@dataclass(frozen=True)
class Port:
    """What a contract says about one end of an edge: the punctuation that travels it, and the feedback against it.

    >>> print(Port(Scheme.parse("[[a:+, b:-]]")))
    {[[a:+, b:-]]}
    """

    scheme: Scheme
    feedback: Feedback = NO_FEEDBACK

    def __str__(self) -> str:
        return f"{self.scheme}" + ("" if self.feedback is NO_FEEDBACK else f" with feedback {self.feedback}")


@dataclass(frozen=True)
class Refusal:
    """The first operator, in the direction of the stream, that is left without a contract.

    On `edge`, none of what `arrives` is `wanted`. Where streams part and meet again, `given` are the contracts that
    were tried there, and no others get further. Without an edge, the operator has nothing to offer at all.

    >>> print(Refusal("join", Edge("probe", "join"), (Port(Scheme()),), (Port(Scheme.parse("[[ts:+, v:-]]")),)))
    from probe arrives {}, but join needs {[[ts:+, v:-]]}
    """

    node: Node
    edge: Edge | None = None
    arrives: tuple[Port, ...] = ()
    wanted: tuple[Port, ...] = ()
    given: tuple[tuple[Node, Contract], ...] = ()

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        if self.edge is None:
            return f"{self.node} has no well-formed contract to offer"
        arrives, wanted = (" or ".join(map(str, ports)) for ports in (self.arrives, self.wanted))
        fixed = "".join(f", with {node} under {contract}" for node, contract in self.given)
        return f"from {self.edge.source} arrives {arrives}, but {self.edge.target} needs {wanted}{fixed}"
