"""Every form of the console has its version, and says whether it asks for a code."""

import re
from collections import Counter
from pathlib import Path
from typing import Final

import pytest
from quart import Quart

import admin_ui
from admin_ui import edits, proof
from admin_ui.app import page_blueprints
from admin_ui.edits import FORMS, LABELS, EditForm
from appliance.record.edit_versions import shown

_TEMPLATES: Final = Path(admin_ui.__file__).parent / "templates"
_SEEN: Final = re.compile(r'seen\("([a-z_.]+)"\)')


def routes(method: str) -> set[str]:
    """Return the endpoints of the console that take a method."""
    app = Quart("console")
    app.url_map.converters["digits"] = app.url_map.converters["string"]
    for blueprint in page_blueprints():
        app.register_blueprint(blueprint)
    rules = app.url_map.iter_rules()
    found = {rule.endpoint for rule in rules if method in (rule.methods or ())}
    return found - {"static"}


def test_every_form_has_a_version_or_overwrites_nothing() -> None:
    """Each route that takes a form is in one of the three tables."""
    named = Counter([*FORMS, *edits.ADDING, *edits.NOT_STORED])

    assert set(named) == routes("POST")
    assert set(named.values()) == {1}


def test_every_form_asks_for_a_code_or_can_be_undone() -> None:
    """Each route that takes a form is in one of the three tables."""
    named = Counter([*proof.RECENT, *proof.ALWAYS, *proof.REVERSIBLE])

    assert set(named) == routes("POST")
    assert set(named.values()) == {1}


def test_irreversible_forms_have_a_version() -> None:
    """The page that asks for the code goes back to the page of the form."""
    assert set(FORMS) >= proof.RECENT


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_form_stands_on_pages_of_the_console(form: EditForm) -> None:
    """A form that came too late is shown again on a page that can be opened."""
    assert form.page in routes("GET")
    assert set(form.also) <= routes("GET") | routes("POST")


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_values_are_named_to_people_or_never_shown(form: EditForm) -> None:
    """What is compared has a label; what is not shown has a sentence."""
    values = dict.fromkeys(form.values)
    visible = set(shown(values, form.values))

    assert visible <= set(LABELS)
    assert set(form.values) - visible <= set(edits.UNSEEN)
    assert set(form.fields) <= visible


def test_templates_put_versions_into_known_forms() -> None:
    """A template names no form that is not in the table."""
    named = {
        name
        for file in _TEMPLATES.rglob("*.html")
        for name in _SEEN.findall(file.read_text())
    }

    assert named <= set(FORMS)
