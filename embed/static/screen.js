// The screen: one title, one body, one bar with one main action. Steps say what goes
// in; where the focus goes and what is announced is decided here.

import { byId, fill, h } from "./dom.js";
import { t } from "./i18n.js";

const STEPS = ["read", "identify", "code", "place", "password"];

/**
 * Show a step.
 * @param {object} step
 * @param {string} step.name also on the body element, for the style.
 * @param {string} step.title
 * @param {Array<Node|string|null>} step.body
 * @param {{label: string, act: (form: FormData) => Promise<void>}} [step.primary]
 * @param {Array<{label: string, act: () => unknown}>} [step.secondary]
 */
export function show(step) {
  document.body.dataset.step = step.name;
  clearAlert();
  byId("title").textContent = step.title;
  fill(byId("body"), ...step.body);
  fill(byId("progress"), ...progress(step.name));
  byId("progress").hidden = !STEPS.includes(step.name);
  bar(step);
  focusTitle();
}

function progress(name) {
  const labels = [t("Read"), t("Who you are"), t("Code"), t("Place"), t("Sign")];
  const at = STEPS.indexOf(name);
  return labels.map((label, index) =>
    h(
      "li",
      {
        "aria-current": index === at ? "step" : null,
        class: index < at ? "done" : null,
      },
      h("span", {}, label),
    ),
  );
}

function bar(step) {
  const form = byId("form");
  form.onsubmit = (event) => {
    event.preventDefault();
    if (step.primary) run(() => step.primary.act(new FormData(form)));
  };
  const others = (step.secondary ?? []).map(({ label, act }) =>
    h("button", { type: "button", class: "plain", onclick: () => run(act) }, label),
  );
  const main = step.primary
    ? h("button", { type: "submit", form: "form", class: "primary" }, step.primary.label)
    : null;
  fill(byId("bar"), ...others, main);
  byId("bar").hidden = !main && others.length === 0;
}

let running = false;

/** Do one thing at a time; a second press while the first runs does nothing. */
async function run(act) {
  if (running) return;
  running = true;
  clearAlert();
  setBusy(true);
  try {
    await act();
  } finally {
    running = false;
    setBusy(false);
  }
}

function setBusy(busy) {
  byId("panel").setAttribute("aria-busy", String(busy));
  for (const button of byId("bar").querySelectorAll("button")) {
    button.setAttribute("aria-disabled", String(busy));
  }
}

/** A new step begins at its title; a frame that nobody is in takes no focus. */
function focusTitle() {
  byId("main").scrollTop = 0;
  if (document.hasFocus()) byId("title").focus({ preventScroll: false });
}

/**
 * Say what went wrong, at the top and at its field.
 * @param {string} text
 * @param {string} [field] id of an input.
 */
export function alert(text, field) {
  const input = field ? document.getElementById(field) : null;
  fill(
    byId("alert"),
    input
      ? h("a", { href: `#${field}`, onclick: (event) => goTo(event, input) }, text)
      : h("span", {}, text),
  );
  byId("alert").hidden = false;
  if (input) {
    input.setAttribute("aria-invalid", "true");
    input.setAttribute("aria-describedby", "alert");
    if (document.hasFocus()) input.focus();
  }
}

function goTo(event, input) {
  // Following the link would change the address.
  event.preventDefault();
  input.focus();
}

export function clearAlert() {
  fill(byId("alert"));
  byId("alert").hidden = true;
  for (const input of document.querySelectorAll("[aria-invalid]")) {
    input.removeAttribute("aria-invalid");
  }
}

/** Say something to screen readers, politely. */
export function announce(text) {
  byId("status").textContent = text;
}

/** A notice that stays over the steps, or none. */
export function notice(text) {
  fill(byId("notice"), text ? h("span", {}, text) : null);
  byId("notice").hidden = !text;
}

/**
 * A labelled input.
 * @param {string} id also its name.
 * @param {string} label
 * @param {Object<string, unknown>} attributes
 * @param {string} [hint]
 */
export function input(id, label, attributes, hint) {
  const described = hint ? { "aria-describedby": `${id}-hint` } : {};
  return h(
    "div",
    { class: "field" },
    h("label", { for: id }, label),
    hint ? h("p", { class: "hint", id: `${id}-hint` }, hint) : null,
    h("input", { id, name: id, required: true, ...described, ...attributes }),
  );
}

/**
 * A list of names and values.
 * @param {Array<[string, string|Node|null]>} rows without a value: left out.
 */
export function facts(rows) {
  return h(
    "dl",
    { class: "facts" },
    ...rows
      .filter(([, value]) => value)
      .map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
  );
}
