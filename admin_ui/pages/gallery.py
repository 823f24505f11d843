"""The library of parts that pages are made of, each in every state."""

from datetime import timedelta

from quart import Blueprint, Response

from admin_ui import words
from admin_ui.core import core
from admin_ui.lists import Chip
from admin_ui.render import Faults, page

blueprint = Blueprint("gallery", __name__, url_prefix="/admin/_ui")


@blueprint.get("")
async def show() -> Response:
    """`GET /admin/_ui`."""
    now = core().clock.now()
    return await page(
        "gallery.html",
        faults=Faults({"wrong": words.say("Choose an option from the list.")}),
        chips=[Chip(words.say("State"), words.say("Pending"), "#chips")],
        soon=now + timedelta(days=3),
        before=now - timedelta(minutes=5),
    )
