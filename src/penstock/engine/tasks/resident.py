"""A task that stays: it takes order after order from the driver, instead of being started for each.

Starting Spark tasks costs tens of milliseconds; telling one that is there costs one. So a small epoch goes to tasks of
a job that Spark has started, placed and watches as any other, but that does not end. An order is a piece of an epoch,
the same `scan` or `merge` that a task of an ordinary job would run. Its reports go back to the driver; its parcels stay
on a shelf in this process until whoever merges them fetches them, over a socket or from the shelf itself. Nothing that
matters is kept here: a task that is lost, with all its parcels, costs running the epoch once more.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener, answer_challenge, deliver_challenge
from typing import Any, NamedTuple

from penstock.engine.tasks.exchange import REPORT, Parcel, place

#: Where a process listens: the path of a socket, or host and port.
Address = str | tuple[str, int]


class Shelf(NamedTuple):
    """Where parcels wait: who has them, and under which name."""

    address: Address
    name: str


@dataclass(frozen=True)
class Order:
    """A piece of an epoch: what to do, with what, and where parcels that come of it belong."""

    work: Callable[[Iterable[Any]], Iterator[tuple[int, Parcel]]]
    given: tuple[str, ...] = ()
    #: Parcels to fetch, those for one group of buckets, from each of these.
    shelves: tuple[Shelf, ...] = ()
    group: int = 0
    #: What to put the parcels that come of it under, for so many groups of so many buckets.
    name: str = ""
    buckets: int = 1
    groups: int = 1
    #: What nobody will ask for any more.
    forget: tuple[str, ...] = ()


@dataclass(frozen=True)
class Done:
    """What came of an order: reports, as pickled by the task, and whether parcels wait; or why it failed."""

    reports: tuple[bytes, ...] = ()
    parcels: bool = False
    failed: str | None = None


def reside(hub: Address, key: bytes, index: int, nothing: Iterable[Any]) -> Iterator[bytes]:
    """Stay, and carry out what the hub orders until it says that it is over, or is gone."""
    list(nothing)
    with contextlib.suppress(EOFError, OSError), Client(hub, authkey=key) as line:
        # Others reach this process in the same folder as the hub, or where its own way to the hub begins.
        own = f"{hub}-{index}-{os.getpid()}" if isinstance(hub, str) else (_host(line), 0)
        resident = Resident(own, key)
        try:
            line.send((index, os.getpid(), resident.door.address))
            while (order := line.recv()) is not None:
                line.send(resident.carry_out(order))
        finally:
            resident.close()
    return iter(())


def _host(line: Connection) -> str:
    with socket.socket(fileno=os.dup(line.fileno())) as end:
        host: str = end.getsockname()[0]
    return host


class Door:
    """Where others come in who know the key; each is received in a thread of its own."""

    def __init__(self, address: Address, key: bytes, receive: Callable[[Connection], None]) -> None:
        self.key, self.receive = key, receive
        self.listener = Listener(address, backlog=16)
        self.address: Address = self.listener.address
        self.open = True
        threading.Thread(target=self._wait, name="penstock-door", daemon=True).start()

    def _wait(self) -> None:
        while self.open:
            with contextlib.suppress(OSError):
                threading.Thread(target=self._let_in, args=(self.listener.accept(),), daemon=True).start()
        with contextlib.suppress(OSError):
            self.listener.close()

    def _let_in(self, line: Connection) -> None:
        # Not in the thread that waits: who says nothing would keep all others out.
        try:
            deliver_challenge(line, self.key)
            answer_challenge(line, self.key)
        except (AuthenticationError, EOFError, OSError):
            line.close()
            return
        self.receive(line)

    def close(self) -> None:
        """Let nobody in any more. Closing a socket does not wake who waits at it, so somebody has to knock."""
        self.open = False
        with contextlib.suppress(OSError), socket.socket(_family(self.address)) as last:
            last.connect(self.address)


def _family(address: Address) -> int:
    return socket.AF_UNIX if isinstance(address, str) else socket.AF_INET


class Resident:
    """One process among those that stay: its shelf, and its lines to the others."""

    def __init__(self, address: Address, key: bytes) -> None:
        self.key = key
        self.door = Door(address, key, self._hand_over)
        self.shelf: dict[str, dict[int, list[tuple[int, Parcel]]]] = {}
        self.lines: dict[Address, Connection] = {}

    def carry_out(self, order: Order) -> Done:
        """Do what an order says. Whatever goes wrong is told; it must not end the task, which has parcels of others."""
        for name in order.forget:
            self.shelf.pop(name, None)
        try:
            given: Iterable[Any] = order.given
            if order.shelves:
                given = [parcel for shelf in order.shelves for parcel in self._fetch(shelf, order.group)]
            reports: list[bytes] = []
            waiting: dict[int, list[tuple[int, Parcel]]] = {}
            for bucket, parcel in order.work(given):
                if parcel.edge == REPORT:
                    reports.append(parcel.payload)
                else:
                    waiting.setdefault(place(order.buckets, order.groups, bucket), []).append((bucket, parcel))
            if waiting:
                self.shelf[order.name] = waiting
            return Done(tuple(reports), bool(waiting))
        except Exception:
            return Done(failed=traceback.format_exc())

    def _fetch(self, shelf: Shelf, group: int) -> list[tuple[int, Parcel]]:
        if shelf.address == self.door.address:
            return self.shelf[shelf.name].pop(group, [])
        line = self.lines.get(shelf.address)
        if line is None:
            line = self.lines[shelf.address] = Client(shelf.address, authkey=self.key)
        line.send((shelf.name, group))
        found: list[tuple[int, Parcel]] = line.recv()
        return found

    def _hand_over(self, line: Connection) -> None:
        with contextlib.suppress(EOFError, OSError), line:
            while True:
                name, group = line.recv()
                line.send(self.shelf.get(name, {}).pop(group, []))

    def close(self) -> None:
        for line in self.lines.values():
            line.close()
        self.door.close()
