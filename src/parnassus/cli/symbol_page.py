"""The page of a class or function in `parnassus show`: import line, signature, docstring with example, methods."""

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding

from parnassus.atlas.symbols import Symbol, describe


def print_symbol(console: Console, symbol: Symbol) -> None:
    """Print how to import and call a symbol, and its docstring."""
    console.print(f"[bold]{symbol.import_line}[/]")
    found = describe(symbol)
    if found is not None:
        console.print(f"\n{escape(found.signature)}", highlight=False)
        if found.docstring:
            console.print("")
            console.print(Padding(escape(found.docstring), (0, 0, 0, 2)))
        for call, first_line in found.methods:
            console.print(f"\n  .{escape(call)}", style="dim")
            if first_line:
                console.print(Padding(escape(first_line), (0, 0, 0, 6)))
    console.print("")
