"""The reader of a folder: a cursor over its files, moved by planning and restored from what was written down."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from penstock.engine.source.backlog import backlog_of
from penstock.engine.source.folder import Folder, FoundFile, Listed
from penstock.engine.source.formats.footer import Footer
from penstock.engine.source.formats.splits import (
    Budget,
    NotReady,
    ReadingUnit,
    TextShape,
    Vanished,
    packed_units,
    parquet_footer,
    parquet_units,
    split_of,
    text_shape,
    text_units,
)
from penstock.engine.source.pruning.guard import can_spare
from penstock.engine.source.rest import Rest
from penstock.engine.source.sameness import Look, Sameness
from penstock.engine.source.split import Split
from penstock.engine.source.stretch import Stretch, gaps, joined
from penstock.engine.source.turns import Wanted, in_turn
from penstock.engine.source.unreadable import PASSED_OVER, Unreadable
from penstock.errors import SourceError, UserError
from penstock.operators.source.operator import Source
from penstock.pattern.pattern import Pattern
from penstock.plan.arrival import in_any_order
from penstock.plan.promise import Counted, Disorder, Files, WhenAll
from penstock.statistics.figures import Backlog

# Below this size a run of lines is not worth a task of its own.
_SMALLEST_TEXT = 1 << 20
# How many files may be passed over in one epoch: their footers are read, and its plan names each of them.
_MOST_SPARED = 1_000


@dataclass(frozen=True)
class BegunFile:
    """A file that is read in part, and which rows or bytes of it are taken."""

    look: Look
    taken: tuple[Stretch, ...]


class FilesReader:
    """Plans splits of the files in a folder, each exactly once, in order of appearance.

    It moves when splits are planned, not when they are read: what was planned is written down before it is read, and
    read again from there after a crash.

    Row groups that nobody wants become splits too, spared ones: they are ticked off as if they had been read, and their
    place in the order is where their maximum counts. Files that are passed over because they cannot be read are splits
    for the same reason.
    """

    def __init__(self, source: Source, files: Files, folder: Listed | None = None, *, lenient: bool = False) -> None:
        self.source = source
        self.files = files
        self.waiting: tuple[tuple[str, str], ...] = ()
        self._folder: Listed = folder if folder is not None else Folder(source.name, files)
        self._options = dict(files.options)
        self._settle = float(self._options.get("settle", 1.0))
        patience = self._settle if "settle" in self._options or files.format != "parquet" else None
        self.unreadable = Unreadable(source.name, self._options.get("on_unreadable", "wait"), patience)
        self._done: dict[str, Look] = {}
        self._finished = 0
        self._begun: dict[str, BegunFile] = {}
        self._sameness = Sameness(source.name, files.format, lenient)
        self._changed: set[str] = set()
        self._ordinals: dict[str, int] = {}
        self._partitions: set[str] = set()
        self._delta: list[list[Any]] = []
        self._touched: set[str] = set()
        self._footers: dict[str, tuple[int, int, Footer | TextShape]] = {}
        self._unread: frozenset[str] = frozenset()
        self._rest = Rest()
        self._only: frozenset[str] | None = None
        self._any_order = in_any_order(source.promises)
        self._one_order = any(isinstance(p, WhenAll | Counted) for p in source.promises)
        self.concerned: tuple[Pattern, ...] | None = None

    @property
    def partitions(self) -> tuple[str, ...]:
        """Every source partition that is known, read or not: the stream is only as far as the slowest of them."""
        return tuple(sorted(self._partitions))

    @property
    def exhausted(self) -> bool:
        """Whether everything that is there has been planned: nothing is left to read, and nothing waits."""
        files = in_turn(self._pending(), (), self._shape)
        return not any(True for _ in self._next_units(files, Budget(1, None, 1), (), True)) and not self.waiting

    def plan(
        self,
        max_rows: int | None,
        max_bytes: int | None,
        parallelism: int,
        settled: bool = False,
        guard: tuple[Pattern, ...] = (),
        prefer: tuple[Pattern, ...] = (),
        steady: bool = False,
    ) -> tuple[Split, ...]:
        """The next splits in arrival order, within the budget; at least one if there is anything to read.

        Row groups whose rows all match the guard are spared, and cost nothing of the budget, unless the reader is to be
        `steady`: then it gets on as it would if it read them. Those that may have rows that somebody prefers come
        first, the first pattern before the others, where promises allow another order.
        """
        budget = Budget(max_rows, max_bytes, max(1, parallelism), steady)
        prefer = prefer if self._any_order else ()
        files = in_turn(self._pending(), prefer if self.files.format == "parquet" else (), self._shape)
        taken = list(self._next_units(files, budget, guard if can_spare(self.source.promises) else (), settled))
        read = {file.name: file for file, unit in taken if not unit.spared and not unit.unreadable}
        self.concerned = self._concerned(read.values(), guard)
        if prefer:
            # Among themselves in the order of the file, so that neighbours make one split.
            place = {file.name: i for i, (file, _) in reversed(list(enumerate(taken)))}
            taken.sort(key=lambda pair: (place[pair[0].name], pair[1].start))
        splits = self._numbered(packed_units(taken, max(1, parallelism)))
        self.advance(splits)
        return splits

    def _concerned(self, files: Iterable[FoundFile], guard: tuple[Pattern, ...]) -> tuple[Pattern, ...] | None:
        """What need be looked for in the rows of these files: as a rule most of what was said is about others."""
        if not guard or self.files.format != "parquet":
            return None
        found: set[int] = set()
        for file in files:
            shape = self._shape(file)
            assert isinstance(shape, Footer)
            found.update(id(p) for p in shape.statistics.in_question(guard))
        return tuple(p for p in guard if id(p) in found)

    def advance(self, splits: Sequence[Split]) -> None:
        """Move past splits, planned just now or read from a write-ahead plan."""
        for split in splits:
            name = self._name(split)
            self._partitions.add(split.partition)
            self._ordinals[split.partition] = split.ordinal + 1
            self._touched.add(split.partition)
            if split.last:
                size = PASSED_OVER if split.unreadable else split.size
                self._finish(name, Look(size, split.mtime_ns, split.mark))
                self._footers.pop(name, None)
                self.unreadable.forget(name, split.path)
            else:
                taken = joined(self._taken(name), split.start, split.stop)
                self._begun[name] = BegunFile(Look(split.size, split.mtime_ns, split.mark), taken)
                self._changed.add(name)

    def _finish(self, name: str, look: Look) -> None:
        self._note(name, look)
        self._sameness.forget(name)
        self._finished += 1

    def _note(self, name: str, look: Look, begun: bool = False) -> None:
        """Write down what a file looks like, of which a part is read or all of it."""
        if begun:
            self._begun[name] = replace(self._begun[name], look=look)
            self._changed.add(name)
        else:
            self._begun.pop(name, None)
            self._done[name] = look
            self._delta.append([name, *look.to_json()])

    def position(self) -> dict[str, Any]:
        """What changed since the last call: call it once per epoch, right after its plan."""
        delta = {
            "files_done": self._finished,
            "delta": self._delta,
            "begun": self._begun_json(self._changed & self._begun.keys()),
            "ordinals": {p: self._ordinals[p] for p in sorted(self._touched)},
        }
        self._delta, self._touched, self._changed = [], set(), set()
        return delta

    def snapshot(self) -> dict[str, Any]:
        """Everything, so that older deltas can be dropped. Same moment as `position`."""
        return {
            "files_done": self._finished,
            "delta": [[n, *look.to_json()] for n, look in self._done.items()],
            "begun": self._begun_json(self._begun),
            "ordinals": dict(sorted(self._ordinals.items())),
        }

    def restore(self, snapshot: Mapping[str, Any] | None, deltas: Sequence[Mapping[str, Any]]) -> None:
        """Take up the position of a snapshot and the deltas after it."""
        for part in ([snapshot] if snapshot is not None else []) + list(deltas):
            self._done.update({n: Look(*look) for n, *look in part["delta"]})
            self._ordinals.update(part["ordinals"])
            self._finished = part["files_done"]
            for name, taken, *look in part.get("begun", ()):
                self._begun[name] = BegunFile(Look(*look), tuple((start, stop) for start, stop in taken))
            for name, *_ in part["delta"]:
                self._begun.pop(name, None)
        self._partitions.update(self._ordinals)
        self._delta, self._touched, self._changed = [], set(), set()

    def fix(self) -> None:
        """Take what is there now for everything there is: a bounded run ends even if files keep coming."""
        self._rest.forget()
        self._only = frozenset(c.name for c in self._folder.listing().files)
        self._unread = self._only - self._done.keys()

    def backlog(self) -> Backlog:
        """What was there when it last planned, and was not planned."""
        return backlog_of([f for f in self._rest.known if f.name not in self._done], self._taken, self._footers)

    def _begun_json(self, names: Iterable[str]) -> list[list[Any]]:
        return [[n, [list(s) for s in self._begun[n].taken], *self._begun[n].look.to_json()] for n in sorted(names)]

    def _taken(self, name: str) -> tuple[Stretch, ...]:
        return self._begun[name].taken if name in self._begun else ()

    def _name(self, split: Split) -> str:
        # A name is the address below the folder; kept short because every epoch writes it down.
        return self._folder.name_of(split.path)

    def _pending(self) -> Iterator[FoundFile]:
        """Files still to be read, those read in part first; checks that files already read are as they were."""
        if not self.waiting and (left := self._rest.left(self._done)) is not None:
            yield from left
            return
        listing = self._folder.listing()
        listed: Sequence[FoundFile] = listing.files
        if self.files.order == "time" and isinstance(self._folder, Folder):
            listed = self.unreadable.in_place(listed)
        if not listed and not self._done and not self._begun and not self._options.get("wait", False):
            raise UserError(
                f"stream '{self.source.name}': no file to read in '{self.files.path}'",
                hint="names that start with '_' or '.' and unfinished files are not read; if files come later, "
                f"read_{self.files.format}(…, wait=True) begins with none",
            )
        if self._only is not None:
            listed = tuple(c for c in listed if c.name in self._only)
        self._partitions.update(c.partition for c in listed)
        todo, begun = [], []
        for c in listed:
            before = self._done.get(c.name)
            if c.name in self._begun:
                before = self._begun[c.name].look
                begun.append(c)
            if before is None:
                todo.append(c)
            elif before.size != PASSED_OVER and (news := self._sameness.news(c, before, self.unreadable.warnings)):
                look, other = news
                self._note(c.name, look, begun=c.name in self._begun and not other)
        if gone := self._begun.keys() - {c.name for c in begun}:
            raise SourceError(
                f"stream '{self.source.name}': file '{min(gone)}' is gone, but only a part of it was read",
                hint="put it back",
            )
        names = frozenset(c.name for c in todo)
        for name in sorted(self._unread - names - self._done.keys() - self._begun.keys()):
            self.unreadable.vanished(name)
        self._unread = names
        todo = [*(c for c in begun if c.name in self._begun), *todo]
        self._rest.keep(listing, todo)
        yield from todo

    def _is_settled(self, c: FoundFile, settled: bool) -> bool:
        """Whether nobody writes any more, as far as can be seen: text does not show where it ends."""
        return settled or self.files.format == "parquet" or self.unreadable.is_quiet(c, self._settle)

    def _next_units(
        self, files: Iterator[Wanted], budget: Budget, guard: tuple[Pattern, ...], settled: bool
    ) -> Iterator[tuple[FoundFile, ReadingUnit]]:
        waiting: list[tuple[str, str]] = []
        try:
            yield from self._readable_units(files, budget, guard, settled, waiting)
        finally:
            # All at once: others look at it while this goes on, and should not see that nothing waits.
            self.waiting = tuple(waiting)

    def _readable_units(
        self,
        files: Iterator[Wanted],
        budget: Budget,
        guard: tuple[Pattern, ...],
        settled: bool,
        waiting: list[tuple[str, str]],
    ) -> Iterator[tuple[FoundFile, ReadingUnit]]:
        spared: set[str] = set()
        held: set[str] = set()
        for file, groups in files:
            if budget.is_spent() or (budget.is_limited and len(spared) >= _MOST_SPARED):
                return
            if file.partition in held:
                continue
            try:
                if not self._is_settled(file, settled):
                    raise NotReady("still being written")
                if not file.size and self.files.format != "parquet":
                    continue  # nothing in it; should there be something later, it is read then
                units, per_row = self._units(file, groups, budget, guard)
                first = next(units, None)
            except Vanished:
                self.unreadable.vanished(file.name)
                self._unread -= {file.name}
                continue
            except (NotReady, SourceError) as why:
                if (unit := self._passed_over(file, why, settled)) is None:
                    waiting.append((file.address, str(why)))
                    if self._one_order:
                        return
                    held.update(() if self._any_order else (file.partition,))
                    continue
                first, units, per_row = unit, iter(()), 1.0
            empty = first is None
            for unit in units if first is None else chain((first,), units):
                if unit.spared:
                    spared.add(file.name)
                free = unit.unreadable or (unit.spared and not budget.steady)
                if not free and not budget.take(unit, int(unit.bytes / per_row)):
                    return
                yield file, unit
                if budget.is_spent():
                    return
            if empty and groups is None:
                # No split will ever name it, so it is ticked off here.
                self._finish(file.name, Look(file.size, file.mtime_ns, self._sameness.mark(file)))

    def _passed_over(self, file: FoundFile, why: NotReady | SourceError, settled: bool) -> ReadingUnit | None:
        """What stands for a file, or the rest of it, that is passed over; None if it is waited for."""
        if isinstance(why, SourceError) and self.unreadable.policy != "skip":
            raise why  # another kind of file: waiting does not help
        text = why.message if isinstance(why, SourceError) else str(why)
        if not self._is_settled(file, settled) or not self.unreadable.passes_over(file, text, settled):
            return None
        taken = self._taken(file.name)
        at = taken[-1][1] if taken else 0
        return ReadingUnit(at, at, 0, 0, None, None, None, unreadable=text)

    def _units(
        self, file: FoundFile, groups: Collection[int] | None, budget: Budget, guard: tuple[Pattern, ...]
    ) -> tuple[Iterator[ReadingUnit], float]:
        taken = self._taken(file.name)
        shape = self._shape(file)
        if isinstance(shape, Footer):
            spares = self._spares(shape, guard)
            return parquet_units(shape, taken, budget.rows, budget.bytes, spares, groups, budget.steady), 1.0
        start = taken[-1][1] if taken else 0
        start = max(start, shape.first_byte)
        if self.files.format == "csv" and self._options.get("multiline", False):
            return text_units(file, start, None), shape.bytes_per_row
        step = max(_SMALLEST_TEXT, -(-(file.size - start) // budget.parallelism))
        limits = (budget.bytes, None if budget.rows is None else int(budget.rows * shape.bytes_per_row))
        step = min([step, *(limit for limit in limits if limit is not None)])
        return text_units(file, start, max(1, step)), shape.bytes_per_row

    def _spares(self, footer: Footer, guard: tuple[Pattern, ...]) -> Callable[[int], bool]:
        """Which row groups need not be read: nobody wants a row, and what they do to the maximum is known."""
        if not guard:
            return lambda index: False
        raises = any(isinstance(p, Disorder) for p in self.source.promises)
        exact = [not raises or group.high is not None for group in footer.groups]
        return lambda index: exact[index] and footer.statistics.is_certain(index, guard)

    def _shape(self, file: FoundFile) -> Footer | TextShape:
        if (why := self.unreadable.trouble(file)) is not None:
            raise NotReady(why)
        known = self._footers.get(file.name)
        if known is not None and known[:2] == (file.size, file.mtime_ns):
            return known[2]
        shape: Footer | TextShape
        if self.files.format == "parquet":
            shape = parquet_footer(self.source, file)
        else:
            header = self.files.format == "csv" and bool(self._options.get("header", True))
            shape = text_shape(self.source, file, header)
        self._footers[file.name] = (file.size, file.mtime_ns, shape)
        return shape

    def _numbered(self, taken: Sequence[tuple[FoundFile, Sequence[ReadingUnit]]]) -> tuple[Split, ...]:
        ordinals = dict(self._ordinals)
        read: dict[str, tuple[Stretch, ...]] = {}
        splits = []
        for file, units in taken:
            ordinal = ordinals.get(file.partition, 0)
            ordinals[file.partition] = ordinal + 1
            if units[0].unreadable:
                splits.append(split_of(self.source.name, self.files.format, file, units, ordinal, last=True))
                continue
            before = read.get(file.name) or self._taken(file.name)
            read[file.name] = joined(before, units[0].start, units[-1].stop)
            shape = self._shape(file)
            whole = (0, shape.rows) if isinstance(shape, Footer) else (shape.first_byte, file.size)
            last = not any(gaps(read[file.name], *whole))
            mark = self._sameness.mark(file)
            splits.append(split_of(self.source.name, self.files.format, file, units, ordinal, last, mark))
        return tuple(splits)
