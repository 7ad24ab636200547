"""Looked at by mypy alone: what the types say of typical calls."""

from datetime import timedelta

import lately
import numpy as np
import numpy.typing as npt

seen = lately.Filter(within=timedelta(seconds=10), fpr=1e-6)
duplicate: bool = seen.observe("a", 1.0)
mask: npt.NDArray[np.bool_] = seen.observe_many(np.arange(3))
when: tuple[int, int] | None = seen.last_seen(("a", 1))
words: list[str] = list(lately.dedup(["a", "b"], last=10))
bits: float = lately.plan(last="1M")[0]["bits_per_key"]
seen.merge(lately.Filter.load("state"))
seen.observe(1.5)  # type: ignore[arg-type]
lately.Filter(window="10s")  # type: ignore[call-arg]
lately.Filter(renew="often")  # type: ignore[arg-type]
