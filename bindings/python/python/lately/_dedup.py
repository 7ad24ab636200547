"""Duplicates of an iterable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar, Unpack

from lately._lately import Filter
from lately._terms import Terms, filter_of

T = TypeVar("T")


def _getter(what: object) -> Callable[[Any], Any]:
    """What finds a key or a time in an item: a function as it is, or the name or the place of a part."""
    if callable(what):
        return what
    return lambda item: item[what]


def dedup(
    iterable: Iterable[T],
    *,
    key: Callable[[T], Any] | str | int | None = None,
    time: Callable[[T], Any] | str | int | None = None,
    filter: Filter | None = None,
    **terms: Unpack[Terms],
) -> Iterator[T]:
    """Yields the items of an iterable that are no duplicates, as soon as they come.

    ``key`` finds the key of an item: a function, or what ``item[key]`` takes; without it the item is the key.
    ``time`` finds its time in the same way; without it an item happens when it comes. The terms are those of
    ``Filter``; or give a ``filter`` that remembers beyond this call.

    >>> import lately
    >>> list(lately.dedup("abcabd"))
    ['a', 'b', 'c', 'd']
    >>> reads = [("tag", 0.0), ("tag", 4.0), ("tag", 9.5)]
    >>> list(lately.dedup(reads, key=0, time=1, within="5s", renew="fresh"))
    [('tag', 0.0), ('tag', 9.5)]
    """
    within = terms.pop("within", None)
    judge = filter_of(within, filter, terms)
    return _fresh(iterable, key, time, judge)


def _fresh(iterable: Iterable[T], key: object, time: object, filter: Filter) -> Iterator[T]:
    # What is no key is refused when it comes.
    observe: Callable[..., bool] = filter.observe
    if key is None and time is None:
        for item in iterable:
            if not observe(item):
                yield item
        return
    key_of = _getter(key) if key is not None else lambda item: item
    if time is None:
        for item in iterable:
            if not observe(key_of(item)):
                yield item
        return
    time_of = _getter(time)
    for item in iterable:
        if not observe(key_of(item), time_of(item)):
            yield item
