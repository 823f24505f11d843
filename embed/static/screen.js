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
 * @param {{label: string, act: (form: FormData) => Promise<void>, kind?: string}} [step.primary]
 * @param {{label: string, act: () => unknown}} [step.back] beside the main action.
 * @param {Array<{label: string, act: () => unknown, kind?: string}>} [step.secondary]
 *   ways out: in their corner, the same in every step; `danger` is for good.
 * @param {string} [step.focus] id of the input that is typed into at once.
 * @param {{again?: boolean}} [how] again: the same step in another language; what was
 *   typed stays, and so does the focus.
 */
export function show(step, { again = false } = {}) {
  const restore = again ? typed() : () => {};
  document.body.dataset.step = step.name;
  clearAlert();
  byId("title").textContent = step.title;
  fill(byId("body"), ...step.body);
  fill(byId("progress"), ...progress(step.name));
  byId("progress").hidden = !STEPS.includes(step.name);
  bar(step);
  restore();
  if (!again) begin(step);
}

/** What stands in the form, to be put into the same form drawn anew. */
function typed() {
  const kept = [...byId("form").elements]
    .filter((input) => input.id && "value" in input && !["file", "radio"].includes(input.type))
    .map(({ id, value }) => [id, value]);
  return () => {
    for (const [id, value] of kept) {
      const input = document.getElementById(id);
      if (input) input.value = value;
    }
  };
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
  const plain = ({ label, act, kind }) =>
    h("button", { type: "button", class: `plain ${kind ?? ""}`, onclick: () => run(act) }, label);
  const on = [
    step.back && plain(step.back),
    step.primary && h("button", { type: "submit", form: "form", class: `primary ${step.primary.kind ?? ""}` }, step.primary.label),
  ].filter(Boolean);
  const out = (step.secondary ?? []).filter(Boolean).map(plain);
  const group = (name, buttons) => (buttons.length ? h("div", { class: name }, ...buttons) : null);
  fill(byId("bar"), group("on", on), group("out", out));
  byId("bar").hidden = on.length + out.length === 0;
}

/** The ways out, in one order and look: leaving first, refusing for good beside it. */
export function out({ cancel, reject }) {
  return [
    cancel && { label: t("Cancel"), act: cancel, kind: "leave" },
    reject && { label: t("Reject…"), act: reject, kind: "danger" },
  ];
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

/**
 * A new step begins at its title, or where it is typed into at once; a frame that
 * nobody is in takes no focus.
 */
function begin(step) {
  byId("main").scrollTop = 0;
  byId("panel").scrollTop = 0;
  const input = step.focus ? document.getElementById(step.focus) : null;
  if (input) describe(input, "title");
  if (!document.hasFocus()) return;
  if (input) focusOn(input);
  else byId("title").focus();
}

/** Give an input the focus with all that belongs to it in view, its alert before all. */
function focusOn(input) {
  input.focus({ preventScroll: true });
  (input.closest(".field") ?? input).scrollIntoView({ block: "nearest" });
  if (!byId("alert").hidden) byId("alert").scrollIntoView({ block: "nearest" });
}

/** Have an element read with an input, before what is read with it already. */
function describe(input, id) {
  const others = described(input).filter((other) => other !== id);
  input.setAttribute("aria-describedby", [id, ...others].join(" "));
}

function described(input) {
  return (input.getAttribute("aria-describedby") ?? "").split(" ").filter(Boolean);
}

/**
 * Say what went wrong: above its field, or at the top; always in view.
 * @param {string} text
 * @param {string} [field] id of an input.
 */
export function alert(text, field) {
  clearAlert();
  const box = byId("alert");
  const input = field ? document.getElementById(field) : null;
  if (input) (input.closest(".control") ?? input).before(box);
  fill(box, h("span", {}, text));
  box.hidden = false;
  if (input) {
    input.setAttribute("aria-invalid", "true");
    describe(input, "alert");
    if (document.hasFocus()) return focusOn(input);
  }
  box.scrollIntoView({ block: "nearest" });
}

export function clearAlert() {
  const box = byId("alert");
  fill(box);
  box.hidden = true;
  byId("messages").append(box);
  for (const input of document.querySelectorAll("[aria-invalid]")) {
    input.removeAttribute("aria-invalid");
    const others = described(input).filter((id) => id !== "alert");
    if (others.length) input.setAttribute("aria-describedby", others.join(" "));
    else input.removeAttribute("aria-describedby");
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
    h(
      "div",
      { class: "control" },
      h("input", { id, name: id, required: true, ...described, ...attributes }),
    ),
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
