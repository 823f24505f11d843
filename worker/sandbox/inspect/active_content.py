"""Finds what a document can do besides being read: scripts, launches, files."""

from collections.abc import Mapping
from typing import Final

from pyhanko.pdf_utils.generic import ArrayObject, DictionaryObject

from appliance.domain.documents.inspected import FindingKind
from worker.sandbox.inspect.pdf_objects import (
    Budget,
    Key,
    dictionary,
    entry,
    key_of,
    raw_items,
    resolve,
)

ACTIONS: Final = {
    "/JavaScript": FindingKind.JAVASCRIPT,
    "/Launch": FindingKind.LAUNCH_ACTION,
    "/GoToR": FindingKind.EXTERNAL_LINK_ACTION,
    "/GoToE": FindingKind.EXTERNAL_LINK_ACTION,
    "/SubmitForm": FindingKind.FORM_SUBMISSION,
    "/ImportData": FindingKind.FORM_SUBMISSION,
    "/Rendition": FindingKind.RICH_MEDIA,
    "/Movie": FindingKind.RICH_MEDIA,
    "/Sound": FindingKind.RICH_MEDIA,
    "/RichMediaExecute": FindingKind.RICH_MEDIA,
}
# A link that opens a web address when it is clicked is no news to anybody; one
# that opens by itself is.
_BY_ITSELF: Final = {**ACTIONS, "/URI": FindingKind.EXTERNAL_LINK_ACTION}
CLICKS: Final = {"/D", "/U"}  # events of the mouse's button
ANNOTATIONS: Final = {
    "/RichMedia": FindingKind.RICH_MEDIA,
    "/3D": FindingKind.RICH_MEDIA,
    "/Screen": FindingKind.RICH_MEDIA,
    "/Movie": FindingKind.RICH_MEDIA,
    "/Sound": FindingKind.RICH_MEDIA,
    "/FileAttachment": FindingKind.EMBEDDED_FILES,
}


class ActiveContent:
    """Gathers findings over a document, each object looked at once.

    Args:
        budget: steps that may be taken over the whole document.
    """

    def __init__(self, budget: Budget) -> None:
        self.found: set[FindingKind] = set()
        self._budget = budget
        # By role as well: what was an action in one place may be a field in another.
        self._seen: set[tuple[str, Key]] = set()

    def scan_catalog(self, catalog: DictionaryObject) -> None:
        """Look at what belongs to the document as a whole.

        Raises:
            DocumentRefusedError: `PDF_TOO_COMPLEX`, when the budget is used up.
        """
        self._scan_actions(catalog, "/OpenAction", _BY_ITSELF)
        self._scan_additional(catalog)
        names = dictionary(catalog, "/Names")
        if _is_tree(names, "/JavaScript"):
            self.found.add(FindingKind.JAVASCRIPT)
        if _is_tree(names, "/EmbeddedFiles"):
            self.found.add(FindingKind.EMBEDDED_FILES)
        self._scan_files(catalog)
        if dictionary(catalog, "/Collection") is not None:
            self.found.add(FindingKind.EMBEDDED_FILES)
        if dictionary(catalog, "/OCProperties") is not None:
            self.found.add(FindingKind.LAYERS)
        self._scan_outlines(catalog)

    def scan_page(self, page: DictionaryObject) -> None:
        """Look at a page and its annotations.

        Raises:
            DocumentRefusedError: `PDF_TOO_COMPLEX`, when the budget is used up.
        """
        self._scan_additional(page)
        self._scan_files(page)
        for raw in raw_items(entry(page, "/Annots")):
            self.scan_node(raw)

    def scan_node(self, raw: object) -> None:
        """Look at an annotation or a form field.

        Raises:
            DocumentRefusedError: `PDF_TOO_COMPLEX`, when the budget is used up.
        """
        if not self._is_new("node", raw):
            return
        node = resolve(raw)
        if not isinstance(node, DictionaryObject):
            return
        kind = ANNOTATIONS.get(str(entry(node, "/Subtype")))
        if kind is not None:
            self.found.add(kind)
        self._scan_actions(node, "/A", ACTIONS)
        self._scan_additional(node)
        self._scan_files(node)

    def _scan_files(self, holder: DictionaryObject) -> None:
        """Look for files that belong to a part of the document."""
        if entry(holder, "/AF") is not None:
            self.found.add(FindingKind.EMBEDDED_FILES)

    def _scan_outlines(self, catalog: DictionaryObject) -> None:
        """Follow the bookmarks, whose links are raw so that a loop shows."""
        todo = [catalog.raw_get("/Outlines")] if "/Outlines" in catalog else []
        while todo:
            raw = todo.pop()
            if not self._is_new("outline", raw):
                continue
            node = resolve(raw)
            if isinstance(node, DictionaryObject):
                self._scan_actions(node, "/A", ACTIONS)
                todo += [node.raw_get(k) for k in ("/First", "/Next") if k in node]

    def _scan_additional(self, holder: DictionaryObject) -> None:
        """Look at the actions that events trigger."""
        events = dictionary(holder, "/AA")
        for event in events or ():
            kinds = ACTIONS if event in CLICKS else _BY_ITSELF
            self._scan_actions(events, str(event), kinds)

    def _scan_actions(
        self,
        holder: DictionaryObject | None,
        key: str,
        kinds: Mapping[str, FindingKind],
    ) -> None:
        """Look at an action and those chained to it.

        Args:
            holder: where the action stands.
            key: under which key.
            kinds: what each type of action is told as.
        """
        role = "event" if kinds is _BY_ITSELF else "action"
        if holder is None or key not in holder:
            return
        todo = [holder.raw_get(key)]
        while todo:
            raw = todo.pop()
            if not self._is_new(role, raw):
                continue
            action = resolve(raw)
            if isinstance(action, ArrayObject):
                # Next actions, or a mere destination, whose page is no action.
                todo += raw_items(action)
            if not isinstance(action, DictionaryObject):
                continue
            kind = kinds.get(str(entry(action, "/S")))
            if kind is not None:
                self.found.add(kind)
            if "/JS" in action:
                self.found.add(FindingKind.JAVASCRIPT)
            if "/Next" in action:
                todo.append(action.raw_get("/Next"))

    def _is_new(self, role: str, raw: object) -> bool:
        """Count a step, and say whether this was not looked at in this role yet."""
        self._budget.take()
        key = key_of(raw)
        if key is None:
            return True
        if (role, key) in self._seen:
            return False
        self._seen.add((role, key))
        return True


def _is_tree(names: DictionaryObject | None, key: str) -> bool:
    """Say whether a name tree has anything in it."""
    tree = dictionary(names, key)
    return any(
        isinstance(branch, ArrayObject) and len(branch) > 0
        for branch in (entry(tree, "/Names"), entry(tree, "/Kids"))
    )
