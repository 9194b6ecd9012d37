"""MultiJoin: several inputs joined at once on one key."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.operators.join.operator import Taken
from penstock.plan.operator import Operator


@dataclass(frozen=True, eq=False)
class MultiJoin(Operator):
    """m inputs joined at once on one key each, one state per input and none for intermediate results.

    `keys[i]` are the key attributes of input i, aligned across inputs. `times[i]` and `windows[i]` (ticks) say for how
    long an event of input i can be joined by later ones: events i and j match if the later is within the window of the
    earlier. A window of None is unlimited.
    """

    word = "join"

    keys: tuple[tuple[str, ...], ...] = field(kw_only=True)
    columns: tuple[Taken, ...] = field(kw_only=True)
    times: tuple[str | None, ...] = field(kw_only=True)
    windows: tuple[int | None, ...] = field(kw_only=True)
    estimate: str = ""

    @property
    def side_names(self) -> tuple[str, ...]:
        """What people call its inputs."""
        return tuple(f"input {k + 1}" for k in range(len(self.inputs)))

    @property
    def detail(self) -> str:
        return f"{self.meaning}; {self.estimate}" if self.estimate else self.meaning

    @property
    def meaning(self) -> str:
        on = " = ".join(", ".join(k) for k in dict.fromkeys(self.keys))
        within = "" if all(w is None for w in self.windows) else f", windows {list(self.windows)} ticks"
        return f"{len(self.inputs)} inputs on {on}{within}"
