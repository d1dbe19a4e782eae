"""Answers with their display: as text, as HTML in a notebook, and as data frames."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from tierwise.api.arguments import path_argument
from tierwise.model.extras import alt, duckdb, pandas, polars
from tierwise.recording.command_outputs import write_output_file
from tierwise.report.document import Document, Page, Section, Text, Tone
from tierwise.report.render import to_html, to_html_page, to_markdown

T = TypeVar("T")


class View(Generic[T]):
    """An answer: ``data`` contains its values, and the view displays them."""

    def __init__(self, data: T, document: Document, title: str) -> None:
        """Store the answer without computing anything.

        Args:
            data: the values.
            document: the values as a readable document.
            title: title of a page.
        """
        self.data = data
        self._document = document
        self._title = title

    def __str__(self) -> str:
        """The answer as Markdown."""
        return to_markdown(self._document)

    def _repr_html_(self) -> str:
        """The answer in a notebook."""
        return str(to_html(self._document))

    def _page(self) -> Page:
        """A page with the headlines first, then the rest."""
        header = [
            block for block in self._document if isinstance(block, Text) and block.tone is Tone.HEADLINE
        ]
        rest = [block for block in self._document if block not in header]
        return Page(self._title, header, [Section("", rest)])

    def to_html(self, path: str | Path) -> None:
        """Write one page that opens offline."""
        write_output_file(path_argument(path, "path"), to_html_page(self._page()).encode())


class Rows(View[Sequence[T]]):
    """Several answers, one row each."""

    def __init__(
        self,
        data: Sequence[T],
        document: Document,
        title: str,
        rows: Sequence[Mapping[str, Any]],
        chart: Callable[[], alt.LayerChart] | None = None,
    ) -> None:
        """A view with plain values for data frames and, if there is a chart, its drawing function."""
        super().__init__(data, document, title)
        self._rows, self._chart = rows, chart

    def __len__(self) -> int:
        """Number of answers."""
        return len(self.data)

    def __getitem__(self, number: int) -> T:
        """One answer."""
        return self.data[number]

    def __iter__(self) -> Iterator[T]:
        """All answers in order."""
        return iter(self.data)

    def to_pandas(self) -> Any:
        """A data frame of pandas, which must be installed."""
        return pandas.DataFrame([dict(row) for row in self._rows])

    def to_polars(self) -> Any:
        """A data frame of polars, which must be installed."""
        return polars.DataFrame([dict(row) for row in self._rows])

    def plot(self) -> alt.LayerChart | None:
        """A chart of the answers for a notebook; ``None`` if they have none."""
        return self._chart() if self._chart else None


class TableView:
    """One table of a recording: a DuckDB relation with ``to_pandas`` and ``to_polars``."""

    def __init__(self, relation: duckdb.DuckDBPyRelation) -> None:
        """Wrap a table; it is read on first use."""
        self.relation = relation

    def __getattr__(self, name: str) -> Any:
        """Delegate to the relation (``filter``, ``aggregate``, ``fetchall``); relations become views."""
        attribute = getattr(self.relation, name)
        return _viewed(attribute) if callable(attribute) else attribute

    def __len__(self) -> int:
        """Number of rows."""
        return int(self.relation.shape[0])

    def to_pandas(self) -> Any:
        """A data frame of pandas, which must be installed."""
        return self.relation.df()

    def to_polars(self) -> Any:
        """A data frame of polars, which must be installed."""
        return self.relation.pl()

    def _repr_html_(self) -> str:
        """The first rows in a notebook."""
        from tierwise.report.document import empty_table

        grid = empty_table(self.relation.columns, [])
        for row in self.relation.limit(20).fetchall():
            grid.add(*map(str, row))
        return str(to_html([grid]))


def _viewed(method: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        result = method(*arguments, **named)
        return TableView(result) if isinstance(result, type(method.__self__)) else result  # type: ignore[attr-defined]

    return call
