/**
 * The demo people's telephones and notebooks: passwords and present codes, of a trial.
 *
 * Outside a trial the site has none of this, and the card stays hidden.
 */

import { element } from "./dom.js";
import { words } from "./words.js";

const REFRESH_MS = 3_000;
const TICK_MS = 250;
const COPIED_MS = 2_000;

const byId = (id) => document.getElementById(id);
const form = byId("form");
const person = byId("visit-person");

let visit = null;
let readAt = 0;
let askedAt = 0;
let reading = false;

/** Show the card and keep its codes up to date. */
export async function showVisit() {
  await enter();
  byId("visit-keys").append(
    row("code", words.code, "person.code"),
    row("signing", words.signingPassword, "person.signing_password"),
    row("login", words.loginPassword, "person.password"),
  );
  byId("visit-console-keys").append(...consoleRows());
  byId("visit").hidden = false;
  person.addEventListener("change", () => {
    fillForm();
    paint();
  });
  form.elements.cuil.addEventListener("input", followForm);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
  await refresh();
  setInterval(tick, TICK_MS);
}

/**
 * Make a demo person the signer of the form, and show their codes.
 * @param {string} cuil
 * @returns {boolean} false: it is none of them, or they are not known here
 */
export function choosePerson(cuil) {
  const digits = cuil.replaceAll("-", "");
  const found = visit?.people.find((each) => each.cuil.replaceAll("-", "") === digits);
  if (!found) return false;
  person.value = found.cuil;
  fillForm();
  paint();
  return true;
}

/** What opens the console: its address, and who signs in there. */
export function consoleRows() {
  return [
    row("console-user", words.consoleUser, "console.user"),
    row("console-password", words.consolePassword, "console.password"),
    row("console-code", words.code, "console.code"),
  ];
}

/** The console's link, or nothing where there is none. */
export function consoleLink() {
  if (!visit?.console) return null;
  return element("a", { href: visit.console.url, target: "_blank", rel: "noopener" }, words.openConsole);
}

/** The public page of a signature, where this is a trial and it is known. */
export async function signaturePage(request) {
  if (!visit) return null;
  const answer = await fetch(`/ensayo/firma/${encodeURIComponent(request)}`).catch(() => null);
  return answer?.ok ? (await answer.json()).url : null;
}

/** Show the visit key that stands in the address, once, and take it out of there. */
async function enter() {
  const key = new URLSearchParams(location.hash.slice(1)).get("visita");
  if (!key) return;
  await fetch("/visita", { method: "POST", headers: { "X-Visita": key } }).catch(() => null);
  history.replaceState(null, "", location.pathname + location.search);
}

async function refresh() {
  if (reading) return;
  reading = true;
  askedAt = performance.now();
  try {
    const answer = await fetch("/ensayo/claves.json");
    if (answer.ok) take(await answer.json());
    else complain(answer.status === 403 ? words.visitKeyMissing : words.codesNotNow);
  } catch {
    complain(words.codesNotNow);
  } finally {
    reading = false;
  }
}

function take(told) {
  const isFirst = visit === null;
  visit = told;
  readAt = performance.now();
  complain("");
  if (isFirst) {
    person.replaceChildren(
      ...told.people.map(({ cuil, name }) => element("option", { value: cuil }, name)),
    );
    followForm();
    byId("visit-console").hidden = !told.console;
    byId("visit-console-link").replaceChildren(consoleLink() ?? "");
  }
  paint();
}

function complain(text) {
  byId("visit-alert").textContent = text;
  byId("visit-alert").hidden = !text;
  byId("visit-body").hidden = Boolean(text) && visit === null;
}

function tick() {
  if (document.hidden) return;
  if (performance.now() - askedAt > REFRESH_MS) refresh();
  if (visit) paint();
}

/** Write the present values wherever the page shows them. */
export function paint() {
  if (!visit) return;
  const known = {
    person: visit.people.find(({ cuil }) => cuil === person.value),
    console: visit.console,
  };
  const age = (performance.now() - readAt) / 1000;
  for (const place of document.querySelectorAll("[data-value]")) {
    const [whose, name] = place.dataset.value.split(".");
    const value = known[whose]?.[name] ?? "";
    place.dataset.copied = value;
    write(place, name === "code" ? `${value.slice(0, 3)} ${value.slice(3)}` : value);
  }
  for (const place of document.querySelectorAll("[data-left]")) {
    const wait = (known[place.dataset.left]?.wait_s ?? 0) - age;
    const left = Math.max(0, Math.ceil(visit.step_left_s - age));
    write(place, wait > 0 ? words.validIn(Math.ceil(wait)) : words.secondsLeft(left));
  }
}

function write(place, text) {
  if (place.textContent !== text) place.textContent = text;
}

/** One value with its name and a button that copies it. */
function row(id, label, value) {
  const [whose, name] = value.split(".");
  const shown = element("code", {});
  shown.dataset.value = value;
  const told = element("dd", {}, shown);
  if (name === "code") {
    const left = element("span", { className: "left" });
    left.dataset.left = whose;
    told.append(left);
  }
  if (navigator.clipboard) told.append(copyButton(shown, label));
  const made = element("div", { className: `key key-${id}` }, element("dt", {}, label), told);
  return made;
}

function copyButton(shown, label) {
  const button = element("button", { type: "button", className: "copy" }, words.copy);
  button.setAttribute("aria-label", words.copyOf(label));
  let timer = 0;
  button.addEventListener("click", async () => {
    const copied = await navigator.clipboard.writeText(shown.dataset.copied).then(() => true, () => false);
    button.textContent = copied ? words.copied : words.notCopied;
    byId("visit-status").textContent = `${label}: ${button.textContent}`;
    clearTimeout(timer);
    timer = setTimeout(() => { button.textContent = words.copy; }, COPIED_MS);
  });
  return button;
}

/** Choosing a person here makes them the signer of the form. */
function fillForm() {
  const chosen = visit?.people.find(({ cuil }) => cuil === person.value);
  if (!chosen) return;
  for (const name of ["cuil", "name", "email"]) form.elements[name].value = chosen[name];
}

/** Typing another person's CUIL shows that person's codes. */
function followForm() {
  const typed = form.elements.cuil.value.replaceAll("-", "");
  const found = visit?.people.find(({ cuil }) => cuil.replaceAll("-", "") === typed);
  if (found) person.value = found.cuil;
  paint();
}
