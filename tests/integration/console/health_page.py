"""*Salud* as somebody reads it, and figures as roles hand them over.

hand_over(console, "signing", sample("rubrica_redis_connected", 0))
assert "Atención" in (await told(console, "ground"))["Redis h"]
"""

import json
import re
from html import unescape
from pathlib import Path

from admin_ui import figures
from appliance.metrics.metrics_file import FORMAT
from tests.support.installation.console import Console

Sample = tuple[str, dict[str, str], float]
HOST = "h"
"""Of the processes that `hand_over` plays."""


def sample(name: str, value: float, **labels: str) -> Sample:
    """A figure, as it stands in a file.

    Args:
        name: of the sample.
        value: of it.
        labels: all that its family has.
    """
    return name, labels, value


def hand_over(
    at: Console | Path,
    role: str,
    *samples: Sample,
    number: int = 1,
    host: str | None = HOST,
    version: str = "1.2.3",
) -> Path:
    """Write what a process of a role would; the path of its file.

    Args:
        at: the console that reads it, or the folder of all roles.
        role: of the process.
        samples: its figures, beside its version.
        number: among its kind.
        host: as it says; None of an earlier version, which did not.
        version: that it says it is.
    """
    folder = at if isinstance(at, Path) else at.front.settings.metrics_dir
    path = folder / role / f"{number}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    built = sample("rubrica_build_info", 1, version=version)
    content = {"format": FORMAT, "samples": [built, *samples]}
    path.write_text(json.dumps(content | ({"host": host} if host else {})))
    return path


async def page(console: Console, **headers: str) -> str:
    """The page of now: what was read a moment ago is read again."""
    fresh = figures.FiguresInReach(console.front.settings.metrics_dir)
    console.app.extensions[figures.KEY] = fresh
    answer = await console.get("/admin/health", **headers)
    assert answer.status == 200, answer.text
    return unescape(answer.text)


def section(text: str, name: str) -> str:
    """One section of the page; empty where it is not there.

    Args:
        text: of the page.
        name: of its heading.
    """
    found = re.search(
        rf'<section class="stack" aria-labelledby="{name}">.*?</section>',
        text,
        re.DOTALL,
    )
    return found[0] if found else ""


def plain(html: str) -> str:
    """What is read of it.

    Args:
        html: of a page.
    """
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


async def told(console: Console, name: str, **headers: str) -> dict[str, str]:
    """The rows of a section, by their heading.

    Args:
        console: whose page it is.
        name: of the section's heading.
        headers: of the browser.
    """
    rows = re.findall(
        r'<th scope="row">(.*?)</th>(.*?)</tr>',
        section(await page(console, **headers), name),
        re.DOTALL,
    )
    return {plain(head): plain(row) for head, row in rows}
