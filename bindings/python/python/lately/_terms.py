"""The terms of a filter, as keyword arguments."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Literal, TypedDict, cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lately._lately import Filter


class OtherTerms(TypedDict, total=False):
    """What ``Filter`` takes, but for a window of time; all may be left out."""

    last: int | str | None
    fpr: float | str | None
    expect: int | str | None
    lateness: str | timedelta | None
    memory: int | str | None
    slack: str | int | timedelta | None
    renew: Literal["always", "fresh"]
    on_full: Literal["grow", "forget", "refuse"]
    structure: str | None
    seed: int
    max_skew: str | timedelta | None
    on_late: Literal["pass", "judge"]


class Terms(OtherTerms, total=False):
    """What ``Filter`` takes; all may be left out."""

    within: str | timedelta | None


def filter_of(within: str | timedelta | None, filter: Filter | None, terms: OtherTerms) -> Filter:
    """The filter that is given, or one of these terms."""
    from lately._lately import Filter

    asked = cast("dict[str, Any]", {**terms})
    if within is not None:
        asked["within"] = within
    if filter is None:
        return Filter(**asked)
    if asked:
        raise TypeError("a filter brings its own terms: " + ", ".join(asked))
    return filter
