"""How much a run gives up: by hand, or as the load demands."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from penstock.errors import UserError, shortly
from penstock.shedding.capacity import HEADROOM
from penstock.shedding.graph import plain

_HINT = "ps.Shedding.to('60%') delivers so much, ps.Shedding.auto() as much as the machine can take, .off() all"


@dataclass(frozen=True)
class Shedding:
    """What is given up.

    >>> Shedding.to("60%"), Shedding.auto(headroom=0.8), Shedding.off()
    (Shedding.to('60%'), Shedding.auto(headroom=0.8), Shedding.off())
    >>> Shedding.to("150%")
    Traceback (most recent call last):
    penstock.errors.UserError: shedding to 150% is not possible. Hint: how much is delivered, from 0% to 100%
    """

    kind: Literal["to", "auto", "off"]
    #: The share of its results that each output still gets, by hand.
    share: float = 1.0
    #: The share of the cores that is planned with.
    headroom: float = HEADROOM
    #: Another one drops other windows and other events.
    seed: int = 0
    #: For tests and for trying it out: the load, as a share of what the machine can take, instead of what is measured.
    load: float | None = None

    @classmethod
    def to(cls, share: float | str, *, seed: int = 0) -> Shedding:
        """Deliver this share of the results of every output, as far as its gap bound allows."""
        return cls("to", _share(share), seed=seed)

    @classmethod
    def auto(cls, *, headroom: float = HEADROOM, seed: int = 0, load: float | None = None) -> Shedding:
        """Deliver all as long as the machine can take it, and then what is worth most."""
        if isinstance(headroom, bool) or not isinstance(headroom, int | float) or not 0 < headroom <= 1:
            raise UserError(
                f"Shedding.auto(headroom={shortly(headroom)}) is not possible",
                hint="the share of the cores to plan with, above 0 and up to 1",
            )
        return cls("auto", headroom=float(headroom), seed=seed, load=load)

    @classmethod
    def off(cls) -> Shedding:
        """Deliver everything; it can be changed while the query runs."""
        return cls("off")

    @classmethod
    def parse(cls, text: str) -> Shedding:
        """As the command line and the control log have it: `60%`, `off`, `auto`, `auto/0.8`.

        >>> Shedding.parse("60%"), Shedding.parse("auto/0.8").text
        (Shedding.to('60%'), 'auto/0.8')
        """
        said, _, load = text.strip().partition("@")
        kind, _, rest = said.partition("/")
        if kind == "off" and not rest:
            return cls.off()
        if kind == "auto":
            try:
                return cls.auto(headroom=float(rest or HEADROOM), load=float(load) if load else None)
            except ValueError:
                raise UserError(f"shedding '{text}' is not possible", hint="auto, or auto/0.8") from None
        return cls.to(text)

    @property
    def text(self) -> str:
        """Short, as `parse` reads it."""
        if self.kind == "to":
            return percent(self.share)
        load = "" if self.load is None else f"@{plain(self.load)}"
        return "off" if self.kind == "off" else f"auto/{plain(self.headroom)}{load}"

    def __repr__(self) -> str:
        seed = [f"seed={self.seed}"] if self.seed else []
        if self.kind == "to":
            return f"Shedding.to({', '.join([repr(self.text), *seed])})"
        if self.kind == "off":
            return "Shedding.off()"
        said = [f"headroom={plain(self.headroom)}"] if self.headroom != HEADROOM else []
        load = [f"load={plain(self.load)}"] if self.load is not None else []
        return f"Shedding.auto({', '.join([*said, *seed, *load])})"


def percent(share: float) -> str:
    """
    >>> percent(0.6), percent(1 / 3), percent(1.0)
    ('60%', '33.3333%', '100%')
    """
    return f"{share * 100:.6g}%"


def _share(given: float | str) -> float:
    what = f"shedding to {shortly(given) if not isinstance(given, str) else given} is not possible"
    hint = "how much is delivered, from 0% to 100%"
    if isinstance(given, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", given)
        if found is None:
            raise UserError(what, hint="write '60%', 'auto' or 'off'")
        share = float(found[1]) / 100
    elif isinstance(given, bool) or not isinstance(given, int | float):
        raise UserError(what, hint=_HINT)
    else:
        share = float(given)
    if not 0 <= share <= 1:
        raise UserError(what, hint=hint)
    return share
