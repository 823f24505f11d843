"""Write the table of docs/metrics.md from `appliance.metrics.metrics`.

`python -m tests.tools.metrics_doc` does it; with `--check` nothing is written and a
stale table is an error.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from appliance.metrics.metrics import FAMILIES, Family
from appliance.operations.metrics.exposition import OF_FILES
from tests.tools.made_pages import between, make_page

TARGET: Final = Path(__file__).resolve().parents[2] / "docs/metrics.md"
_BEGIN: Final = "<!-- Made by `python -m tests.tools.metrics_doc`. -->\n"
_END: Final = "<!-- End. -->\n"
_HEAD: Final = "| Name | Kind | Labels | Of | Meaning |\n|---|---|---|---|---|\n"


def render(page: str) -> str:
    """The page with its table as it should be.

    Args:
        page: as it is.
    """
    rows = [_row(family) for family in (*FAMILIES.values(), *OF_FILES)]
    return between(page, _BEGIN, _END, f"{_HEAD}{''.join(rows)}")


def _row(family: Family) -> str:
    name = f"{family.name}_total" if family.kind == "counter" else family.name
    labels = ", ".join(f"`{label}`" for label in family.labels)
    roles = ", ".join(sorted(family.roles)) or "all"
    return f"| `{name}` | {family.kind} | {labels} | {roles} | {family.help} |\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Write the page, or say that it is stale (`make_page`)."""
    return make_page("metrics_doc", TARGET, render, argv)


if __name__ == "__main__":
    sys.exit(main())
