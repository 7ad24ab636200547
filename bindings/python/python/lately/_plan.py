"""The table of what terms cost with each structure."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any, overload


class PlanTable(Sequence[dict[str, Any]]):
    """What terms cost with each structure: a sequence of rows, which prints as the table of ``lately plan``."""

    def __init__(self, rows: list[dict[str, Any]], text: str) -> None:
        self._rows = rows
        self._text = text

    @overload
    def __getitem__(self, at: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, at: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, at: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        return self._rows[at]

    def __len__(self) -> int:
        return len(self._rows)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return self._text

    @property
    def chosen(self) -> dict[str, Any] | None:
        """The row of the structure that is taken when nobody names one; ``None`` under a limit of ``memory``."""
        return next((row for row in self._rows if row["chosen"]), None)

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame`` of the rows."""
        import pandas

        return pandas.DataFrame(self._rows)

    def _repr_html_(self) -> str:
        names = ["structure", "capacity", "memory_bytes", "bits_per_key", "lower_bound_bits_per_key"]
        head = "".join(f"<th>{name.replace('_', ' ')}</th>" for name in names)
        rows = []
        for row in self._rows:
            cells = "".join(f"<td>{_show(row.get(name))}</td>" for name in names)
            style = " style='font-weight: bold'" if row["chosen"] else ""
            rows.append(f"<tr{style}>{cells}</tr>")
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"

    def plot(self, ax: Any = None) -> Any:
        """Draws the bits per key of each structure, and what no structure of its grain can go below, with matplotlib.

        Returns the axes: those that are given, or new ones.
        """
        if ax is None:
            import matplotlib.pyplot as pyplot

            height = 1.2 + 0.35 * len(self)
            _, ax = pyplot.subplots(figsize=(7, height), layout="constrained")
        rows = sorted((row for row in self if "error" not in row), key=lambda row: -row["bits_per_key"])
        late = max((row["lateness"] for row in rows), default=0)
        for place, row in enumerate(rows):
            # From what any structure of the same grain needs to what this one takes.
            bound, bits = row["lower_bound_bits_per_key"], row["bits_per_key"]
            colour = "#1f5f8b" if row["chosen"] else "#8fa9b8"
            ax.plot([bound, bits], [place, place], color=colour, linewidth=3, zorder=1)
            ax.plot(bound, place, "|", color="#c0392b", markersize=14, markeredgewidth=2)
            ax.plot(bits, place, "o", color=colour, markersize=8)
            note = " (in order only)" if row["lateness"] < late else ""
            ax.annotate(
                f"{bits:.1f}{note}", (bits, place), (8, 0), textcoords="offset points", va="center", fontsize=8
            )
        ax.set_yticks(range(len(rows)), [row["structure"] for row in rows])
        ax.plot([], [], "|", color="#c0392b", markersize=10, markeredgewidth=2, label="no structure takes less")
        ax.plot([], [], "o", color="#1f5f8b", label="chosen")
        # Structures differ by a factor of a hundred.
        ax.set_xscale("log")
        if rows:
            most = max(row["bits_per_key"] for row in rows)
            least = min(row["lower_bound_bits_per_key"] for row in rows)
            ax.set_xlim(least / 1.3, most * (most / least) ** 0.35)
        ax.xaxis.set_major_formatter("{x:g}")
        ax.set_xlabel("bits per key")
        ax.margins(y=0.12)
        ax.legend(loc="upper right", fontsize=8, frameon=False)
        ax.spines[["top", "right"]].set_visible(False)
        return ax


def _show(value: object) -> str:
    match value:
        case None:
            return "-"
        case float():
            return f"{value:.1f}"
        case int():
            return f"{value:,}"
        case _:
            return escape(str(value))
