"""Write the table of docs/metrics.md from `appliance.core.metrics`.

`python -m tests.tools.metrics_doc` does it; with `--check` nothing is written and a
stale table is an error.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from appliance.core.metrics import FAMILIES, Family
from appliance.operations.metrics.exposition import OF_FILES

TARGET: Final = Path(__file__).resolve().parents[2] / "docs/metrics.md"
_BEGIN: Final = "<!-- Made by `python -m tests.tools.metrics_doc`. -->\n"
_END: Final = "<!-- End. -->\n"
_HEAD: Final = "| Name | Kind | Labels | Of | Meaning |\n|---|---|---|---|---|\n"


def render(page: str) -> str:
    """The page with its table as it should be.

    Args:
        page: as it is.
    """
    before, _, rest = page.partition(_BEGIN)
    rows = [_row(family) for family in (*FAMILIES.values(), *OF_FILES)]
    after = rest.partition(_END)[2]
    return f"{before}{_BEGIN}{_HEAD}{''.join(rows)}{_END}{after}"


def _row(family: Family) -> str:
    name = f"{family.name}_total" if family.kind == "counter" else family.name
    labels = ", ".join(f"`{label}`" for label in family.labels)
    roles = ", ".join(sorted(family.roles)) or "all"
    return f"| `{name}` | {family.kind} | {labels} | {roles} | {family.help} |\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Write the page, or say that it is stale.

    Returns:
        0 when the page is as it should be, 1 when `--check` finds it stale.
    """
    parser = argparse.ArgumentParser(prog="metrics_doc", description=__doc__)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(argv)
    page = TARGET.read_text(encoding="utf-8")
    wanted = render(page)
    if not options.check:
        TARGET.write_text(wanted, encoding="utf-8")
        return 0
    if page == wanted:
        return 0
    print(  # noqa: T201 (a command's output)
        f"{TARGET.name} is stale: run python -m tests.tools.metrics_doc",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
