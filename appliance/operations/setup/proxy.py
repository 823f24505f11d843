"""The sample of a web server, with the names of this installation."""

from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from appliance.operations.setup_answers import Answers

SAMPLES: Final = {"nginx": "nginx.conf", "caddy": "Caddyfile", "haproxy": "haproxy.cfg"}
"""File of `docs/samples`, by web server."""


def fits(answers: Answers) -> bool:
    """Whether a sample can have these addresses: three hosts, on the usual port."""
    urls = [answers.base_url, answers.iframe_url, answers.admin_url]
    parts = [urlsplit(url) for url in urls]
    hosts = {part.hostname for part in parts}
    return (
        answers.proxy in SAMPLES
        and len(hosts) == len(urls)
        and all(part.port is None and part.scheme == "https" for part in parts)
    )


def sample_for(answers: Answers, folder: Path) -> tuple[str, str]:
    """Name and text of the sample that fits some answers.

    Args:
        answers: that `fits`.
        folder: `docs/samples`.
    """
    name = SAMPLES[answers.proxy]
    text = (folder / name).read_text("utf-8")
    # The longer names first: they end as the shorter one does.
    names = {
        "marco.firma.example": answers.iframe_url,
        "consola.firma.example": answers.admin_url,
        "/etc/ssl/private/firma.example.key": answers.certificate_key,
        "/etc/ssl/firma.example.pem": answers.certificate,
        "firma.example": answers.base_url,
    }
    marks = {key: f"\0{number}\0" for number, key in enumerate(names)}
    for key, mark in marks.items():
        text = text.replace(key, mark)
    for key, mark in marks.items():
        value = names[key]
        text = text.replace(mark, urlsplit(value).hostname or value)
    return name, text
