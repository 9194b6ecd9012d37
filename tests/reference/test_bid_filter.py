"""The bid filter drops what has lost, and never what wins."""

from __future__ import annotations

from bid_filter import BidFilter
from hypothesis import given
from hypothesis import strategies as st

from penstock.pattern.pattern import Pattern
from penstock.pattern.schema import Schema
from penstock.reference.item import Event
from penstock.reference.running import feed

BID = Schema.parse("item string, price int")


def bids(*rows: tuple[str, int | None]) -> list[Event]:
    return [Event(BID.event(row)) for row in rows]


def test_one_item_is_remembered() -> None:
    filtering = BidFilter("item", "price", 1)
    sent = bids(("i1", 10), ("i1", 8), ("i1", 12), ("i2", 5), ("i1", 9), ("i1", 9))
    passed = [bool(filtering.on_event(bid)) for bid in sent]
    # i2 takes the place of i1, so 9 passes though 12 was there; and equal bids pass.
    assert passed == [True, False, True, True, True, True]


@given(
    sent=st.lists(st.tuples(st.sampled_from("abcd"), st.none() | st.integers(0, 9)), max_size=30),
    capacity=st.integers(1, 5),
)
def test_the_winning_bid_always_passes(sent: list[tuple[str, int | None]], capacity: int) -> None:
    filtering = BidFilter("item", "price", capacity)
    passed = [e.row for e in feed(filtering, bids(*sent)) if isinstance(e, Event)]
    for item in {item for item, _ in sent}:
        prices = [price for name, price in sent if name == item and price is not None]
        left = [row["price"] for row in passed if row["item"] == item and row["price"] is not None]
        assert max(prices, default=None) == max(left, default=None)
        assert prices.count(max(prices, default=0)) == left.count(max(prices, default=0))
    assert len(filtering.state()) <= capacity
    if capacity >= 4:  # Every item is remembered, so every bid that has lost is dropped.
        outbid = [price for i, (item, price) in enumerate(sent) if _is_outbid(sent[:i], item, price)]
        assert len(sent) - len(passed) == len(outbid)


def _is_outbid(before: list[tuple[str, int | None]], item: str, price: int | None) -> bool:
    return price is not None and any(name == item and p is not None and p > price for name, p in before)


def test_an_item_that_is_over_is_forgotten() -> None:
    filtering = BidFilter("item", "price", 5)
    feed(filtering, bids(("i1", 10), ("i2", 5)))
    filtering.on_punctuation(Pattern.parse("[*, < 7]", BID))
    assert len(filtering.state()) == 2
    filtering.on_punctuation(Pattern.parse("['i1', *]", BID))
    assert filtering.state() == [("i2", 5)]
