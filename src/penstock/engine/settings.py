"""How a run goes about its work, as its user may set it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from penstock.errors import UserError

#: What a committed epoch survives: the end of the power too, or the end of the process alone.
Durability = Literal["commit", "process"]


@dataclass(frozen=True)
class Settings:
    """How a run goes about its work; but for `on_error`, which may stop it, none of this changes what it computes."""

    buckets: int | None = None
    max_rows: int | None = None
    max_bytes: int | None = 512 << 20
    batch_rows: int = 4_000_000
    memory: str = "2GB"
    overlap: bool = True
    fuse_below: int = 16 << 20
    #: Epochs of fewer bytes go to tasks that stay, where the session has room for them; 0: all are jobs of their own.
    #: None: a GiB where all tasks share a machine, 64 MiB where parcels have to travel.
    resident_below: int | None = None
    #: Seconds, beside one for each MiB to read, after which such a task that does not answer is given up.
    hung_after: float = 60.0
    attempts: int = 3
    rewrite_above: float = 0.5
    merge_above: int = 8
    #: What becomes of a file that has changed after it was read: an error, or a warning and no second look.
    changed_files: Literal["fail", "ignore"] = "fail"
    #: Who may look into the folder of a checkpoint that is made: nobody else.
    checkpoint_mode: int = 0o700
    durability: Durability = "commit"
    #: What becomes of an event on which an expression fails: "reject" sets it aside, "fail" stops the run.
    on_error: str = "reject"
    fault: str | None = None


ON_ERROR = ("reject", "fail")

#: What may be changed while a run goes on.
TUNABLE = ("max_rows", "max_bytes", "rewrite_above", "merge_above")


def check_setting(name: str, value: Any) -> None:
    """Complain about a setting that makes no sense."""
    if name in ("max_rows", "max_bytes", "buckets", "batch_rows", "merge_above") and value is not None:
        if not isinstance(value, int) or value < 1:
            raise UserError(f"setting {name}={value!r} is not possible", hint="a whole number of at least 1")
    elif name == "resident_below" and value is not None and not (isinstance(value, int) and value >= 0):
        raise UserError(f"setting {name}={value!r} is not possible", hint="a number of bytes; 0: no tasks that stay")
    elif name == "hung_after" and not (isinstance(value, int | float) and value > 0):
        raise UserError(f"setting {name}={value!r} is not possible", hint="a number of seconds above 0")
    elif name == "changed_files" and value not in ("fail", "ignore"):
        raise UserError(
            f"setting {name}={value!r} is not possible", hint="'fail', or 'ignore' to go on with what was read before"
        )
    elif name == "checkpoint_mode" and (not isinstance(value, int) or value & ~0o777 or value & 0o700 != 0o700):
        raise UserError(
            f"setting {name}={value!r} is not possible", hint="permissions such as 0o750; the owner needs all of them"
        )
    elif name == "durability" and value not in get_args(Durability):
        hint = "'commit' survives power loss; 'process' never waits for the disk, and survives a kill of the process"
        raise UserError(f"setting durability={value!r} is not possible", hint=hint)
    elif name == "on_error" and value not in ON_ERROR:
        raise UserError(f"setting on_error={value!r} is not possible", hint=f"one of {', '.join(map(repr, ON_ERROR))}")
    elif name == "rewrite_above" and not (isinstance(value, int | float) and 0 <= value <= 1):
        raise UserError(f"setting {name}={value!r} is not possible", hint="a share between 0 and 1")
