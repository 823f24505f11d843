"""The pages for developers: their Markdown, and that both languages tell the same."""

import re
from typing import Final

import pytest

from appliance.developer_docs import markdown
from appliance.developer_docs.pages import DOWNLOADS, PAGES, SAMPLES, page_text
from appliance.domain.vocab import WebhookEvent
from appliance.system.catalogues import LANGUAGES

KNOWN: Final = {
    "web_url": "https://firma.example",
    "base_url": "https://firma.example",
    "iframe_url": "https://marco.firma.example",
    "environment": "PREPROD",
    "integrity": "sha384-…",
}
_AS_WRITTEN: Final = {name: f"{{{name}}}" for name in ("web_url", "integrity")}
"""What files to be saved have as they are written."""
NAMES: Final = [page.name for page in PAGES]
_FENCE: Final = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("<b>&", "<p>&lt;b&gt;&amp;</p>"),
        ("`<i>`", "<p><code>&lt;i&gt;</code></p>"),
        ("**a `b`**", "<p><strong>a <code>b</code></strong></p>"),
        ("[x](y?a&b)", '<p><a href="y?a&amp;b">x</a></p>'),
        (
            "```sh\n<a> `x`\n```",
            '<pre tabindex="0"><code class="language-sh">&lt;a&gt; `x`\n</code></pre>',
        ),
        ("<script>x</script>", "<p>&lt;script&gt;x&lt;/script&gt;</p>"),
        ("[x](javascript:y)", "<p>[x](javascript:y)</p>"),
    ],
)
def test_texts_are_escaped(text: str, html: str) -> None:
    """Whatever stands in them; code most of all."""
    assert str(markdown.render(text)) == f"{html}\n"


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("## Una `clave`", '<h2 id="una-clave">Una <code>clave</code></h2>'),
        ("> nota", '<div class="note">\n<p>nota</p>\n</div>'),
        (
            "[x](https://a.example)",
            '<p><a href="https://a.example" rel="noreferrer">x</a></p>',
        ),
        (
            "| a |\n|---|\n| b |",
            (
                '<div class="table" tabindex="0"><table>\n<thead>\n<tr>\n'
                '<th scope="col">a</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n'
                "<td>b</td>\n</tr>\n</tbody>\n</table></div>"
            ),
        ),
    ],
)
def test_page_has_what_markdown_lacks(text: str, html: str) -> None:
    """Places to link to, what keys scroll, notes, and no referrer to others."""
    assert str(markdown.render(text)) == f"{html}\n"


@pytest.mark.parametrize("name", NAMES)
def test_both_languages_have_the_same_code(name: str) -> None:
    """Block by block; what an error says is in its language."""
    spanish, english = (
        [
            (language, re.sub(r'"(title|detail)": ".*"', "", code))
            for language, code in _FENCE.findall(page_text(lang, name, KNOWN))
        ]
        for lang in LANGUAGES
    )

    assert spanish == english


@pytest.mark.parametrize("name", NAMES)
def test_both_languages_have_the_same_headings_and_rows(name: str) -> None:
    """As many of each."""
    spanish, english = (
        re.sub(r"[^#|>\n]", "", _FENCE.sub("", page_text(lang, name, KNOWN)))
        for lang in LANGUAGES
    )
    for mark in (r"^#+$", r"^\|", "^>"):
        counts = [
            len(re.findall(mark, text, re.MULTILINE)) for text in (spanish, english)
        ]
        assert counts[0] == counts[1], mark


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("lang", LANGUAGES)
def test_nothing_is_left_to_be_filled_in(lang: str, name: str) -> None:
    """Every address is the installation's own; what stands in braces is a path's."""
    text = page_text(lang, name, KNOWN)

    assert not re.search(r"\{(include|vector|web_url|base_url|iframe_url|env)", text)
    assert "127.0.0.1:8080" not in text


@pytest.mark.parametrize("lang", LANGUAGES)
def test_webhooks_page_has_every_event(lang: str) -> None:
    """Each `type` that a message may have."""
    told = set(re.findall(r"`([\w.]+)`", page_text(lang, "webhooks", KNOWN)))

    assert set(map(str, WebhookEvent)) - told == set()


def test_every_sample_is_shown_and_can_be_saved() -> None:
    """No file is there for nothing."""
    shown = {
        name
        for name, code in SAMPLES.items()
        for page in PAGES
        if code.decode().replace("{iframe_url}", KNOWN["iframe_url"]).rstrip("\n")
        in page_text("es", page.name, {**KNOWN, **_AS_WRITTEN})
    }

    assert shown == set(SAMPLES)
    assert {"request.py", "Request.java", "webhook.php"} <= DOWNLOADS


@pytest.mark.parametrize("lang", LANGUAGES)
def test_page_of_the_sdk_gives_the_element_its_token(lang: str) -> None:
    """The sample is a whole page; it is run by tests/e2e/sdk."""
    (sample,) = (
        code
        for language, code in _FENCE.findall(page_text(lang, "sdk", KNOWN))
        if language == "html"
    )

    assert "firma.fetchToken = " in sample
    assert "firma.userData = " in sample
    assert 'integrity="sha384-…"' in sample
