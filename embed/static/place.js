// The step in which the signer says where the mark goes, and the chosen place in words.

import { h } from "./dom.js";
import { t } from "./i18n.js";
import { input, out } from "./screen.js";

const corners = () => ({
  topLeft: t("Top left"),
  topRight: t("Top right"),
  bottomLeft: t("Bottom left"),
  bottomRight: t("Bottom right"),
  custom: t("Another point"),
  none: t("No visible mark"),
});

/** What earlier signatures leave of a mark in a place of one's own. */
function limit({ newField, fields }) {
  if (newField === "visible") return null;
  if (newField === "none") return t("Earlier signatures allow signing only in the document's own fields.");
  return fields.some(({ obstacle }) => obstacle === null)
    ? t("Earlier signatures allow a mark only in the document's own fields.")
    : t("Earlier signatures allow no other mark: yours will not be seen on the page.");
}

/** Where the mark goes. */
export function place({ session, chosen, isSeen, change, go, reject, cancel }) {
  const { pages, fields, newField, preset } = session.document;
  if (preset?.fixed) return fixedPlace({ session, isSeen, go, reject, cancel });
  const page = pages.length > 1 && newField === "visible" ? pageInput(pages.length, chosen, change) : null;
  const choose = (choice) => {
    if (page) page.hidden = choice.field !== null || choice.corner === "preset";
    // Where the room is little, how it is put is told below all else.
    if (choice.corner === "custom") document.getElementById("custom-hint").scrollIntoView({ block: "nearest" });
    change(choice);
  };
  if (page) page.hidden = isElsewhere(chosen);
  const told = limit(session.document);
  return {
    name: "place",
    title: t("Where does your signature go?"),
    body: [
      told ? h("p", { class: "hint" }, told) : null,
      ownPlaces(session, chosen, choose, page),
      fields.length > 0 ? documentFields(fields, chosen, choose) : null,
    ],
    primary: { label: t("Continue"), act: go },
    secondary: out({ cancel, reject }),
  };
}

/** Where whoever asked for it wants it, and nowhere else. */
function fixedPlace({ session: { integrator }, isSeen, go, reject, cancel }) {
  return {
    name: "place",
    title: t("Where your signature goes"),
    body: [
      h("p", {}, isSeen
        ? t("{integrator} set the place and the look of your signature. The page shows it.", { integrator })
        : t("{integrator} asks for a signature without a visible mark: nothing of it will be seen on any page.", { integrator })),
    ],
    primary: { label: t("Continue"), act: go },
    secondary: out({ cancel, reject }),
  };
}

/** Whether the page of a choice is not the signer's to type. */
function isElsewhere({ field, preset }) {
  return field !== null || preset;
}

function ownPlaces({ integrator, document: { newField, preset, terms } }, chosen, choose, page) {
  const asked = terms.visible
    ? t("Where {integrator} asked for it", { integrator })
    : t("Without a visible mark, as {integrator} asked for it", { integrator });
  const proposed = preset ? [["preset", asked]] : [];
  const others = Object.entries(corners()).filter(
    ([corner]) => newField === "visible" || (newField === "invisible" && corner === "none"),
  );
  const offered = [...proposed, ...others];
  if (offered.length === 0) return null;
  return h(
    "fieldset",
    { class: "corners whole" },
    h("legend", {}, t("Place on the page")),
    ...offered.flatMap(([corner, label]) => {
      const hint = corner === "custom" ? howTo() : null;
      return [option(corner, {
        value: corner,
        checked: corner === valueOf(chosen),
        onchange: () => choose({ corner, field: null }),
        "aria-describedby": hint?.id,
      }, label), hint];
    }),
    page,
  );
}

/** How a mark is put anywhere; by keys only where there are some (`followInput`). */
function howTo() {
  return h("p", { class: "hint how", id: "custom-hint" },
    t("Choose a point on the page, or drag the mark."), " ",
    h("span", { class: "by-keys" }, t("By keyboard: Tab to the mark and move it with the arrow keys; with Shift, little by little.")));
}

/** Which of the own places is chosen; null for a field of the document. */
function valueOf({ corner, field, x, preset }) {
  if (preset) return "preset";
  if (field !== null) return null;
  return corner !== "none" && x !== null ? "custom" : corner;
}

/**
 * Show in the form the choice that holds.
 * @param {object} chosen
 * @param {{page?: boolean}} [how] page: its number as well.
 */
export function reflect(chosen, { page: withPage = true } = {}) {
  for (const radio of document.querySelectorAll('input[name="corner"]')) {
    radio.checked = radio.dataset.field === undefined
      ? radio.value === valueOf(chosen)
      : radio.dataset.field === chosen.field;
  }
  const page = document.getElementById("page");
  if (!page) return;
  page.closest(".field").hidden = isElsewhere(chosen);
  if (!withPage) return;
  // What somebody is typing there is theirs until they leave it.
  const typed = page === document.activeElement && page.value !== page.dataset.shown;
  if (!typed) page.value = page.dataset.shown = String(chosen.page);
}

function pageInput(pages, chosen, change) {
  const field = input("page", t("Page, 1 to {pages}", { pages }), {
    type: "number",
    min: 1,
    max: pages,
    value: chosen.page,
    onchange: (event) => change({ page: Number(event.target.value) }),
  });
  field.classList.add("page-field");
  field.querySelector("input").dataset.shown = String(chosen.page);
  field.querySelector(".control").append(
    h("button", { type: "button", onclick: () => change({ page: pages }) }, t("Last page")),
  );
  return field;
}

/** The fields that the document has for signatures, also those that cannot be signed. */
function documentFields(fields, chosen, choose) {
  return h(
    "fieldset",
    { class: "corners fields" },
    h("legend", {}, t("Fields of the document")),
    ...fields.map(({ name, page, obstacle }, index) =>
      option("own", {
        id: fieldId(index),
        value: "field",
        "data-field": name,
        checked: name === chosen.field,
        disabled: obstacle !== null,
        onchange: () => choose({ field: name }),
      }, name, obstacle ?? whereabouts(page))),
  );
}

function whereabouts(page) {
  return page ? t("Page {page}", { page }) : t("It does not appear on any page");
}

/** @param {number} index among the document's fields. */
export function fieldId(index) {
  return `field-${index}`;
}

function option(kind, attributes, label, more) {
  return h(
    "label",
    { class: `corner ${kind}` },
    h("input", { type: "radio", name: "corner", ...attributes }),
    h("span", {}, label, more ? h("span", { class: "hint" }, more) : null),
  );
}

/** The chosen place, as the signer reads it. */
export function placeWords(chosen, integrator) {
  const { page, field, corner, preset } = chosen;
  if (preset && corner !== "none") {
    const asked = t("Where {integrator} asked for it", { integrator });
    return `${asked}, ${t("page {page}", { page })}`;
  }
  if (field !== null) return t("Field {name}", { name: field });
  const value = preset ? corner : valueOf(chosen);
  const where = value === "custom" ? t("Where you put it") : corners()[value];
  return value === "none" ? where : `${where}, ${t("page {page}", { page })}`;
}
