"""What is made when a page is first asked for needs no file and no further module.

An upgrade replaces the files of a role while it runs.
"""

import json
import subprocess
import sys
from typing import Final

_PROGRAM: Final = """
import json, sys
import appliance.api.role
from appliance.system.late_imports import FACES, load_late
from appliance.developer_docs import markdown
from appliance.developer_docs.error_catalogue import catalogue
from appliance.developer_docs.pages import PAGES, page_text
from appliance.developer_docs.webhook_vectors import vectors_file
from appliance.web import i18n
load_late(FACES)
i18n.load()
opened, before = [], set(sys.modules)
sys.addaudithook(lambda event, given: event == "open" and opened.append(str(given[0])))
known = dict.fromkeys(("web_url", "base_url", "iframe_url", "environment"), "x")
for lang in i18n.LANGUAGES:
    for page in PAGES:
        markdown.render(page_text(lang, page.name, known))
    list(catalogue(lang))
vectors_file()
print(json.dumps([opened, sorted(set(sys.modules) - before)]))
"""


def test_pages_need_no_file_and_no_module_when_they_are_made() -> None:
    """Their texts, the catalogue of errors and the vectors."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], check=True, capture_output=True, text=True
    )

    assert json.loads(done.stdout) == [[], []]
