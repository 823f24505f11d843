// The screen: one title, one body, one bar with one main action. Steps say what goes
// in; where the focus goes and what is announced is decided here.

import { byId, fill, h } from "./dom.js";
import { Stopped } from "./failure.js";
import { size, t } from "./i18n.js";

const STEPS = ["read", "identify", "code", "place", "password"];
/** Who picks from a list of what waits for them says first who they are. */
const WHO_FIRST = ["identify", "code", "read", "place", "password"];

/** What stands in the places of messages: a text, or how it is said in any language. */
const said = { alert: null, lost: null, notice: null, status: null };
const textOf = (say) => (typeof say === "function" ? say() : say);
/** Messages that move about the page; what they stood in may be gone meanwhile. */
const movable = {};
const message = (id) => (movable[id] ??= byId(id));
/** The control that was pressed last. */
let pressed = null;
/** Keys that only whoever has a keyboard presses. */
const KEYS = new Set(["Tab", "ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"]);

/**
 * Follow what is pressed, so that messages stand beside it, and whether keys are in use:
 * `data-keys` on the root says so, for hints on a device that seems to have none.
 */
export function followInput() {
  const capture = true;
  addEventListener("click", ({ target }) => {
    pressed = target.closest("button, label, input") ?? pressed;
  }, { capture });
  addEventListener("keydown", ({ key }) => {
    if (KEYS.has(key)) document.documentElement.dataset.keys = "";
  }, { capture });
}

/**
 * Put a message where it is seen from the control that was pressed last: the frame may be
 * higher than the window, and its other end out of sight.
 * @param {HTMLElement} box
 */
function putBeside(box) {
  const near = pressed?.isConnected && pressed.checkVisibility() ? pressed : null;
  const row = near?.closest("#panel li, #tools");
  if (row) row.append(box);
  else if (near?.closest("#top")) putHome(box);
  else if (!byId("bar").hidden) byId("bar").prepend(box);
  else if (near) (near.closest("p") ?? near).after(box);
  else putHome(box);
}

function putHome(box) {
  byId("messages").append(box);
}

/**
 * Show a step.
 * @param {object} step
 * @param {string} step.name also on the body element, for the style.
 * @param {string} step.title
 * @param {Array<Node|string|null>} step.body
 * @param {{label: string, act: (form: FormData) => Promise<void>, kind?: string,
 *   waits?: () => string}} [step.primary] waits: what is waited for where that takes a while.
 * @param {{label: string, act: () => unknown}} [step.back] beside the main action.
 * @param {Array<{label: string, act: () => unknown, kind?: string}>} [step.secondary]
 *   ways out, each in its corner, the same in every step: `leave` is at the top, `danger`
 *   is for good.
 * @param {string} [step.focus] id of the input that is typed into at once.
 * @param {{again?: boolean, whoFirst?: boolean, isPlaced?: boolean, stay?: boolean}} [how] again: the same step in another
 *   language; what was typed and said stays, and so does the focus. whoFirst: the
 *   signer says who they are before they read. stay: the focus stays on the button that
 *   led here, where the step has it too.
 */
export function show(step, { again = false, whoFirst = false, isPlaced = true, stay = false } = {}) {
  const focused = stay ? focusedButton() : null;
  const restore = again ? typed() : () => {};
  const { alert: told, lost } = again ? said : {};
  noteOpened();
  document.body.dataset.step = step.name;
  if (!again) {
    document.querySelector("dialog")?.close();
    announce(null);
  }
  // Home, before what they stand in is drawn anew.
  clearAlert();
  retrying(null);
  byId("title").textContent = step.title;
  fill(byId("body"), ...step.body);
  reopen(step.name);
  const line = progress(step.name, whoFirst, isPlaced);
  fill(byId("progress"), ...line);
  byId("progress").hidden = line.length === 0;
  bar(step);
  restore();
  showWait();
  retrying(lost ?? null);
  if (!again) return begin(step, focused && document.querySelector(focused));
  if (told) alert(told.say, told.field, { quiet: true });
  notice(said.notice);
  announce(said.status);
}

/** How the button that has the focus is found in the next step, or null. */
function focusedButton() {
  const { id, tagName, classList } = document.activeElement;
  if (tagName !== "BUTTON") return null;
  return id ? `#${id}` : classList.contains("primary") ? "#bar .primary" : null;
}

/** Which details of each step the reader has opened, by its name. */
const opened = new Map();
const detailsShown = () => [...byId("body").querySelectorAll("details")];

/** Note which details are open, before another step is drawn. */
function noteOpened() {
  const { step } = document.body.dataset;
  if (step) opened.set(step, detailsShown().map(({ open }) => open));
}

/** Open what the reader had open when this step was shown before, as after a wrong password. */
function reopen(name) {
  for (const [index, details] of detailsShown().entries()) {
    if (opened.get(name)?.[index]) details.open = true;
  }
}

/** Whether something was typed in this step that would be lost. */
export function isTyped() {
  return [...byId("form").elements].some(
    (input) => input.type !== "radio" && input.type !== "number" && (input.value ?? "") !== (input.defaultValue ?? ""),
  );
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

function progress(name, whoFirst, isPlaced) {
  const labels = { read: t("Read"), identify: t("Who you are"), code: t("Code"), place: t("Place"), password: t("Sign") };
  const steps = (whoFirst ? WHO_FIRST : STEPS).filter((step) => isPlaced || step !== "place");
  const isList = name === "requests" || name === "documents";
  const at = steps.indexOf(whoFirst && isList ? "read" : name);
  if (at < 0) return [];
  return steps.map((step, index) =>
    h(
      "li",
      {
        "aria-current": index === at ? "step" : null,
        class: index < at ? "done" : null,
      },
      h("span", {}, labels[step]),
    ),
  );
}

function bar(step) {
  const form = byId("form");
  form.onsubmit = (event) => {
    event.preventDefault();
    if (step.primary) run(() => step.primary.act(new FormData(form)), step.primary.waits);
  };
  const plain = ({ label, act, kind }) =>
    h("button", { type: "button", class: `plain ${kind ?? ""}`, onclick: () => run(act) }, label);
  const on = [
    step.back && plain(step.back),
    step.primary && h("button", { type: "submit", form: "form", class: `primary ${step.primary.kind ?? ""}`, onkeydown: once }, step.primary.label),
  ].filter(Boolean);
  const ways = (step.secondary ?? []).filter(Boolean);
  const out = ways.filter(({ kind }) => kind !== "leave").map(plain);
  const group = (name, buttons) => (buttons.length ? h("div", { class: name }, ...buttons) : null);
  fill(byId("bar"), group("out", out), group("on", on));
  byId("bar").hidden = on.length + out.length === 0;
  wayOut(ways.find(({ kind }) => kind === "leave"));
}

/** The way out of it all is at the top, apart from what goes on; it waits for nothing. */
function wayOut(way) {
  const button = byId("leave");
  button.hidden = !way;
  button.onclick = way ? () => way.act() : null;
  button.querySelector(".label").textContent = button.title = way?.label ?? "";
}

/** A key that is held down presses once: the focus may stay for the next step. */
function once(event) {
  if (event.repeat && event.key === "Enter") event.preventDefault();
}

/** The ways out: leaving, at the top, and refusing for good, in the bar. */
export function out({ cancel, reject }) {
  return [
    cancel && { label: t("Cancel"), act: cancel, kind: "leave" },
    reject && { label: t("Reject…"), act: reject, kind: "danger" },
  ];
}

let running = false;

const ofTheService = () => t("Waiting for the signing service…");

/**
 * Do one thing at a time; a second press while the first runs does nothing.
 * @param {() => unknown} act
 * @param {() => string} [say] what is waited for where it takes a while.
 */
export async function run(act, say = ofTheService) {
  if (running) return;
  running = true;
  clearAlert();
  setBusy(true);
  const wait = waitFor(say);
  try {
    await act();
  } catch (error) {
    if (!(error instanceof Stopped)) throw error;
  } finally {
    running = false;
    setBusy(false);
    wait.end();
  }
}

/** After so long a wait is told of. */
const WAIT_MS = 1_000;
/** What is waited for, the last one being what is told. */
const waits = new Set();
let asking = 0;

/**
 * Say what is waited for, once that takes more than a moment.
 * @param {() => string} say
 * @param {{stop?: () => void}} [how] stop: gives it up, without leaving.
 * @returns {{progress: (done: number, total: number) => void, end: () => void}}
 */
export function waitFor(say, { stop } = {}) {
  const wait = { say, stop, isLong: false, done: 0, total: 0 };
  waits.add(wait);
  beginWait(wait);
  return {
    progress(done, total) {
      const isFirst = wait.total === 0;
      Object.assign(wait, { done, total });
      if (shownWait() !== wait) return;
      if (isFirst) showWait();
      else tellBytes("wait-bytes", done, total);
    },
    end() {
      clearTimeout(wait.timer);
      waits.delete(wait);
      showWait();
    },
  };
}

function beginWait(wait) {
  wait.timer = setTimeout(() => {
    wait.isLong = true;
    showWait();
    if (shownWait() === wait) announce(wait.say);
  }, WAIT_MS);
}

/** While somebody is asked something, they are what is waited for. */
function holdWaits(is) {
  asking += is ? 1 : -1;
  for (const wait of waits) {
    clearTimeout(wait.timer);
    wait.isLong = false;
    if (!asking) beginWait(wait);
  }
  showWait();
}

/** Steps that say by themselves what is waited for. */
const SAY_IT = new Set(["loading", "signing"]);

/** Of the long waits the last one, unless the step says it. */
function shownWait() {
  const isSaid = SAY_IT.has(document.body.dataset.step);
  return [...waits].findLast(({ isLong, stop }) => isLong && (stop || !isSaid));
}

function showWait() {
  const wait = shownWait();
  byId("wait").hidden = !wait;
  if (!wait) return fill(byId("wait"));
  return fill(
    byId("wait"),
    h("span", { class: "spinner", "aria-hidden": "true" }),
    h("span", { class: "words" }, wait.say()),
    wait.total > 0 && bytesMeter("wait-bytes", wait.done, wait.total),
    wait.stop && h("button", { type: "button", class: "plain", onclick: wait.stop }, t("Stop")),
  );
}

/**
 * How much of a file has gone or come.
 * @param {string} id
 * @param {number} done bytes.
 * @param {number} total bytes.
 */
export function bytesMeter(id, done, total) {
  return h("span", { class: "meter bytes" },
    h("label", { for: id, id: `${id}-label` }, bytesOf(done, total)),
    h("progress", { id, value: done, max: total }));
}

/** Tell a meter of `bytesMeter` how much it is now. */
export function tellBytes(id, done, total) {
  const bar = document.getElementById(id);
  if (!bar) return;
  bar.max = total;
  bar.value = done;
  byId(`${id}-label`).textContent = bytesOf(done, total);
}

/** Bytes of all, in words. */
export function bytesOf(done, total) {
  return t("{done} of {total}", { done: size(done), total: size(total) });
}

function setBusy(busy) {
  byId("panel").setAttribute("aria-busy", String(busy));
  for (const button of byId("bar").querySelectorAll("button")) {
    button.setAttribute("aria-disabled", String(busy));
  }
}

/**
 * Ask before something that is not undone.
 * @param {{title: string, text: string, yes: string, no: string, kind?: string}} asked
 * @returns {Promise<boolean>} false also where another step came meanwhile.
 */
export function ask({ title, text, yes, no, kind = "" }) {
  const answer = (value) => () => dialog.close(value);
  const stay = h("button", { type: "button", onclick: answer("") }, no);
  const dialog = h(
    "dialog",
    { "aria-labelledby": "ask-title", "aria-describedby": "ask-text" },
    h("h2", { id: "ask-title" }, title),
    h("p", { id: "ask-text" }, text),
    h(
      "div",
      { class: "answers" },
      stay,
      h("button", { type: "button", class: `primary ${kind}`, onclick: answer("yes") }, yes),
    ),
  );
  document.body.append(dialog);
  holdWaits(true);
  dialog.showModal();
  // Browsers refuse `autofocus` within another site's page, and complain of it.
  stay.focus();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      holdWaits(false);
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
  });
}

/**
 * A new step begins at its title, or where it is typed into at once; a frame that
 * nobody is in takes no focus.
 */
function begin(step, button) {
  byId("main").scrollTop = 0;
  byId("panel").scrollTop = 0;
  const input = step.focus ? document.getElementById(step.focus) : null;
  if (input) describe(input, "title");
  if (!document.hasFocus()) return;
  if (input) focusOn(input);
  else if (button) button.focus({ preventScroll: true });
  else byId("title").focus();
}

/** Give an input the focus with all that belongs to it in view, its alert before all. */
function focusOn(input) {
  input.focus({ preventScroll: true });
  (input.closest(".field") ?? input).scrollIntoView({ block: "nearest" });
  if (!message("alert").hidden) message("alert").scrollIntoView({ block: "nearest" });
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
 * Say what went wrong: above its field, or beside what was pressed; always in view.
 * @param {string|(() => string)} say the text, or how to say it in the language in use.
 * @param {string} [field] id of an input.
 * @param {{quiet?: boolean}} [how] quiet: the focus stays where it is.
 */
export function alert(say, field, { quiet = false } = {}) {
  clearAlert();
  said.alert = { say, field };
  const box = message("alert");
  const input = field ? document.getElementById(field) : null;
  if (input) (input.closest(".control") ?? input).before(box);
  else putBeside(box);
  fill(box, h("span", {}, textOf(say)));
  box.hidden = false;
  if (input) {
    input.setAttribute("aria-invalid", "true");
    describe(input, "alert");
    if (quiet) return;
    // Another code is typed over the wrong one.
    if (input.matches(".code")) input.select();
    if (document.hasFocus()) return focusOn(input);
  }
  if (quiet) return;
  // What stands still in the view needs no scrolling, which would take the document along.
  const around = box.closest("#bar, #tools");
  const isStill = around && getComputedStyle(around).position === "sticky";
  if (!isStill) box.scrollIntoView({ block: "nearest" });
}

/**
 * Take away what was said to be wrong.
 * @param {() => string} [say] only if it is this.
 */
export function clearAlert(say) {
  if (say && said.alert?.say !== say) return;
  const box = message("alert");
  said.alert = null;
  fill(box);
  box.hidden = true;
  putHome(box);
  for (const input of document.querySelectorAll("[aria-invalid]")) {
    input.removeAttribute("aria-invalid");
    const others = described(input).filter((id) => id !== "alert");
    if (others.length) input.setAttribute("aria-describedby", others.join(" "));
    else input.removeAttribute("aria-describedby");
  }
}

/**
 * Say something to screen readers, politely.
 * @param {string|(() => string)|null} say
 */
export function announce(say) {
  said.status = say;
  byId("status").textContent = textOf(say) ?? "";
}

/**
 * Say beside what was pressed that something is tried again until it succeeds; null: no more.
 * @param {string|(() => string)|null} say
 */
export function retrying(say) {
  const box = message("lost");
  const text = textOf(say);
  // Told once, however often it is tried.
  if (text && text === box.textContent) return;
  said.lost = say;
  fill(box);
  box.hidden = !text;
  if (!text) return putHome(box);
  putBeside(box);
  fill(box, h("span", {}, text));
}

/**
 * A notice that stays over the steps, or none.
 * @param {string|(() => string)|null} say
 */
export function notice(say) {
  said.notice = say;
  const text = textOf(say);
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
 * A list that scrolls by itself: `data-more` on it says that it goes on below what is
 * seen, where scroll bars may be hidden.
 * @param {HTMLElement} list
 * @returns {HTMLElement} it.
 */
export function scrolling(list) {
  const look = () => {
    const below = list.scrollHeight - list.scrollTop - list.clientHeight;
    list.toggleAttribute("data-more", below > 1);
  };
  list.addEventListener("scroll", look, { passive: true });
  new ResizeObserver(look).observe(list);
  return list;
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
