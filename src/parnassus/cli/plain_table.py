"""The style of the tables in the terminal."""

from rich.table import Table


def plain_table(*columns: str) -> Table:
    """A table without lines, whose columns fold long values."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
