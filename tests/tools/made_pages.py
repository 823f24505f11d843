"""A page of docs/ that a tool makes: written anew, or checked.

Each tool is a command, `python -m tests.tools.NAME`. With `--check` it writes nothing,
and a stale page is an error.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path


def make_page(
    tool: str,
    target: Path,
    render: Callable[[str], str],
    argv: Sequence[str] | None = None,
) -> int:
    """Write the page, or say that it is stale.

    Args:
        tool: name of the tool's module in `tests.tools`.
        target: the page.
        render: makes the whole page from the page as it is.
        argv: arguments of the command; those of the process when None.

    Returns:
        0 when the page is as it should be, 1 when `--check` finds it stale.
    """
    parser = argparse.ArgumentParser(prog=tool)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(argv)
    page = target.read_text(encoding="utf-8") if target.exists() else ""
    wanted = render(page)
    if not options.check:
        target.write_text(wanted, encoding="utf-8")
        return 0
    if page == wanted:
        return 0
    print(  # noqa: T201 (a command's output)
        f"{target.name} is stale: run python -m tests.tools.{tool}", file=sys.stderr
    )
    return 1


def between(page: str, begin: str, end: str, wanted: str) -> str:
    """The page with other text between two marks, which stay."""
    before, _, rest = page.partition(begin)
    return f"{before}{begin}{wanted}{end}{rest.partition(end)[2]}"
