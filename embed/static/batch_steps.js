// What the steps of a session for a batch show: its documents, one password for all of
// them, and what became of each. They hold no state.

import { h } from "./dom.js";
import { documentCount, instant, pageCount, t } from "./i18n.js";
import { facts, out, scrolling } from "./screen.js";
import { LEGAL, forgotten, messageFrom, passwordField, spinner, terms, termsOf, verification, warnings, warningsOf } from "./steps.js";

/** Documents that one tabs through without help. */
const FEW = 5;

const STANDING = {
  pending: ({ seen }) => (seen ? t("Opened") : t("Not opened yet")),
  signing: () => t("Being signed"),
  signed: () => t("Signed"),
  failed: () => t("It cannot be signed"),
  rejected: () => t("You rejected it"),
  cancelled: () => t("Withdrawn"),
  expired: () => t("Its time ran out"),
};

/** How a document stands, and why it failed. */
function standing(item) {
  const said = STANDING[item.state](item);
  return item.state === "failed" && item.reason ? `${said}: ${item.reason.message}` : said;
}

/** How many stand so, in the order that they are told in. */
const COUNTED = {
  unopened: (count) => t("{count} not opened yet", { count }),
  opened: (count) => (count === 1 ? t("1 opened") : t("{count} opened", { count })),
  signed: (count) => (count === 1 ? t("1 signed") : t("{count} signed", { count })),
  signing: (count) => t("{count} being signed", { count }),
  pending: (count) => t("{count} not signed", { count }),
  failed: (count) => (count === 1 ? t("1 that cannot be signed") : t("{count} that cannot be signed", { count })),
  rejected: (count) => (count === 1 ? t("1 rejected") : t("{count} rejected", { count })),
  cancelled: (count) => (count === 1 ? t("1 withdrawn") : t("{count} withdrawn", { count })),
  expired: (count) => (count === 1 ? t("1 whose time ran out") : t("{count} whose time ran out", { count })),
};

/**
 * How many documents stand how: all of them, each once.
 * @param {Array<{state: string, seen: boolean}>} list
 * @param {{isOver?: boolean}} [how] isOver: what still waits is told as not signed.
 */
export function tally(list, { isOver = false } = {}) {
  const kindOf = ({ state, seen }) => (state !== "pending" || isOver ? state : seen ? "opened" : "unopened");
  const counts = {};
  for (const item of list) counts[kindOf(item)] = (counts[kindOf(item)] ?? 0) + 1;
  return Object.keys(COUNTED).filter((kind) => counts[kind]).map((kind) => COUNTED[kind](counts[kind])).join(", ");
}

/** How many are signed of those that nobody took out, as a sentence. */
export function signedSoFar(counts) {
  const { signed } = counts;
  const total = toBeSigned(counts);
  return total === 1 ? t("{signed} of 1 signed", { signed }) : t("{signed} of {total} signed", { signed, total });
}

function openedSoFar(opened, total) {
  return total === 1 ? t("{opened} of 1 opened", { opened }) : t("{opened} of {total} opened", { opened, total });
}

function toBeSigned({ pending, signing, signed, failed }) {
  return pending + signing + signed + failed;
}

function meter(id, value, most, label) {
  return h("div", { class: "meter" },
    h("label", { for: id, id: `${id}-label` }, label),
    h("progress", { id, value, max: Math.max(most, 1) }));
}

/** What the signatures of all of them say and permit; null where they differ in it. */
function sharedTerms(list) {
  const kinds = new Set(list.map((item) => JSON.stringify(item.terms)));
  return kinds.size === 1 ? list[0].terms : null;
}

/** What the signature of one of them says and permits, in one line. */
function termsLine(item) {
  const told = termsOf(item.terms).map(([name, value]) => [`${name}: `, h("bdi", {}, value)]);
  if (told.length === 0) return null;
  return h("span", { class: "hint says" }, ...told.flatMap((each, index) => (index ? [" · ", ...each] : each)));
}

/** Every document of the batch; those that wait can be opened. */
export function documents({ list, counts, openings, integrator, message, done, open, go, cancel }) {
  const { unread, pending } = counts;
  const demanded = list.filter(({ state, open: isDemanded }) => state === "pending" && isDemanded).length;
  const isOpened = list.every(({ state, seen }) => state !== "pending" || seen);
  const shared = sharedTerms(list);
  return {
    name: "documents",
    title: t("{documents} for you to sign", { documents: documentCount(pending) }),
    body: [
      done ? h("p", { class: "success" }, done) : null,
      messageFrom(integrator, message),
      h("p", { id: "what-to-do" }, whatToDo(counts, integrator, openings, isOpened)),
      shared && terms(shared),
      demanded > 0 ? meter("read-count", demanded - unread, demanded, openedSoFar(demanded - unread, demanded)) : null,
      pending < list.length
        ? h("p", { class: "hint", id: "tally" }, t("In all, {documents}: {tally}.", { documents: documentCount(list.length), tally: tally(list) }))
        : null,
      skip(list),
      scrolling(h("ul", { class: "choices batch", tabindex: "0", "aria-label": t("Documents") },
        ...list.map((item) => h("li", {}, entry(item, { open, withTerms: !shared, openings }))))),
    ],
    primary: { label: unread > 0 ? toRead(counts, demanded) : toSign(counts), act: go },
    secondary: out({ cancel }),
  };
}

/** Past the buttons of a long list, to the main action: seen where the keyboard comes to it. */
function skip(list) {
  if (list.length <= FEW) return null;
  const on = () => document.querySelector("#bar .primary").focus();
  return h("button", { type: "button", class: "skip", onclick: on }, t("Skip the list"));
}

/**
 * What the signer has to open of it, and does next.
 * @param {{unread: number, pending: number}} counts of the documents that wait: those
 *   still to be opened, and all.
 * @param {string} integrator
 * @param {"todas"|"muestra"|"ninguna"} openings
 * @param {boolean} isOpened whether all that wait were opened.
 */
export function whatToDo({ unread, pending }, integrator, openings, isOpened) {
  // One that need not be opened: none is demanded, or it is outside the sample.
  if (pending === 1 && unread === 0 && !isOpened) {
    return t("{integrator} asks you to sign it. Open it if you want to read it; then you sign it with your password.", { integrator });
  }
  if (openings === "ninguna" && pending > 1) {
    return t("{integrator} asks you to sign them together. Read the list; open any that you want to read. Then you sign all of them at once, with one password.", { integrator });
  }
  if (openings === "muestra" && pending > 1) {
    return unread > 0
      ? t("{integrator} asks you to sign them together. Open the ones that are marked, a sample, and any other that you want to read; then you sign all of them at once, with one password.", { integrator })
      : t("You have opened the sample. Open any other that you want to read, or sign all of them at once, with one password.");
  }
  if (pending === 1) {
    return unread > 0
      ? t("Open it first; then you sign it with your password.")
      : t("You have opened it. You sign it with your password.");
  }
  return unread > 0
    ? t("{integrator} asks you to sign them together. Open each one first; then you sign all of them at once, with one password.", { integrator })
    : t("You have opened all of them. You sign them at once, with one password.");
}

function toRead({ unread, pending }, demanded) {
  return unread < demanded ? t("Go on reading") : pending === 1 ? t("Read it") : t("Read the first one");
}

function toSign({ pending }) {
  return t("Sign {documents}", { documents: documentCount(pending) });
}

function entry(item, { open, withTerms, openings }) {
  const isMarked = openings === "muestra" && item.open && !item.seen && item.state === "pending";
  const told = [
    h("span", { class: "name" }, item.name),
    h("span", { class: "hint" }, `${pageCount(item.pages)} · `, h("span", { class: `state ${item.seen ? "seen" : ""} ${item.state}` }, standing(item))),
    isMarked && h("span", { class: "hint marked" }, t("To be opened before you sign")),
    withTerms && termsLine(item),
  ];
  if (item.state !== "pending") return h("div", { class: "over" }, ...told);
  return h("button", { type: "button", onclick: () => open(item) }, ...told);
}

/**
 * One of them is read.
 * @param {string|null} told the message that the list has shown: it is not said again.
 */
export function reading({ session, told, at, left, previous, list, go, reject, cancel }) {
  const { batch: { total }, document: { message } } = session;
  const others = left > 0 && t("{count} more to open", { count: left });
  return {
    name: "read",
    title: session.document.name,
    body: [
      h("nav", { class: "walk", "aria-label": t("Documents") },
        h("p", { class: "hint" }, [t("Document {number} of {total}", { number: at + 1, total }), others].filter(Boolean).join(" · ")),
        h("button", { type: "button", onclick: list }, t("See all of them")),
        previous && h("button", { type: "button", id: "previous", onclick: previous }, t("Previous document"))),
      message === told ? null : messageFrom(session.integrator, message),
      terms(session.document.terms),
      warnings(session),
    ],
    primary: { label: left > 0 ? t("Next") : t("Continue"), act: go },
    secondary: out({ cancel, reject }),
  };
}

/** One signing password for all that waits. */
export function password({ session, list, go, back, cancel, help }) {
  const { signer, integrator } = session;
  const waiting = list.filter(({ state }) => state === "pending");
  const shared = sharedTerms(waiting);
  const names = scrolling(h("ol", { class: "names", tabindex: "0", "aria-label": t("Documents") },
    ...waiting.map((item) => h("li", {}, item.name, shared ? null : termsLine(item)))));
  return {
    name: "password",
    focus: "password",
    title: t("Sign {documents}", { documents: documentCount(waiting.length) }),
    body: [
      h("p", { class: "lead", id: "consent" }, consent(waiting.length, list.length, waiting.filter(({ seen }) => seen).length)),
      repeatedWarnings(waiting),
      shared && terms(shared),
      shared ? null : h("p", { id: "differing" }, t("The signatures do not all say and permit the same:")),
      shared ? null : names,
      passwordField(signer),
      forgotten(help),
      h("p", { class: "legal" }, LEGAL[signer.legal]()),
      h("details", {},
        h("summary", {}, t("What you are signing, and with what")),
        facts([
          [t("You"), `${signer.name}, CUIL ${signer.cuil}`],
          [t("Your mark"), waiting.some((item) => item.terms.visible) && t("Where {integrator} asks for it, or else at the bottom left of the first page", { integrator })],
          [t("Certificate issued by"), signer.issuer],
        ]),
        shared ? names : null),
    ],
    primary: { label: t("Sign {documents}", { documents: documentCount(waiting.length) }), act: go },
    back: { label: t("Back"), act: back },
    secondary: out({ cancel }),
  };
}

/** Names that are told of each warning; of more it is told how many. */
const NAMED = 5;

/** What a signer was warned of when they opened documents in an earlier session. */
function repeatedWarnings(waiting) {
  const names = new Map();
  for (const item of waiting.filter(({ isShown }) => !isShown)) {
    for (const told of warningsOf(item)) names.set(told, [...(names.get(told) ?? []), item.name]);
  }
  if (names.size === 0) return null;
  return h("div", { class: "warning", id: "warned" },
    h("h2", {}, t("Before you sign")),
    h("ul", {}, ...[...names].map(([told, whose]) => h("li", {}, `${told} `, h("bdi", {}, some(whose))))));
}

function some(names) {
  const told = names.slice(0, NAMED).join(", ");
  const left = names.length - NAMED;
  return left > 0 ? t("({names} and {count} more)", { names: told, count: left }) : `(${told})`;
}

/**
 * What the password stands for, and that some of it was not opened.
 * @param {number} waiting documents that are signed now.
 * @param {number} total documents of the batch.
 * @param {number} opened of those that are signed now.
 */
export function consent(waiting, total, opened) {
  if (opened < waiting) {
    if (waiting === 1) return t("With your password you sign 1 document, which you have not opened.");
    return opened === 0
      ? t("With your password you sign {count} documents. You have read the list of them and opened none.", { count: waiting })
      : t("With your password you sign {count} documents. You have read the list of them and opened {opened}.", { count: waiting, opened });
  }
  if (waiting === 1) return t("With your password you sign 1 document, which you have opened.");
  return waiting === total
    ? t("With your password you sign the {count} documents, all of which you have opened.", { count: waiting })
    : t("With your password you sign the {count} documents that still wait, all of which you have opened.", { count: waiting });
}

/** The appliance works. */
export function signing({ counts, checking }) {
  return {
    name: "signing",
    title: t("Signing"),
    body: [
      spinner(),
      counts ? meter("sign-count", counts.signed, toBeSigned(counts), signedSoFar(counts)) : null,
      h("p", {}, checking
        ? t("The connection was lost. We are checking what happened to your signatures; no document is ever signed twice.")
        : t("Your key signs each document and every result is checked. If you close this page, signing continues.")),
    ],
  };
}

/** Not all could be signed, and some of them still can. */
export function partial({ list, counts, reasons, save, again, finish, cancel }) {
  return {
    name: "partial",
    title: tally(list, { isOver: true }),
    body: [
      h("p", {}, t("Some were not signed. You can try those again, with your password.")),
      skip(list),
      results(list, reasons, save),
    ],
    primary: { label: t("Try the rest again"), act: again },
    back: counts.signed > 0 ? { label: t("Leave it at these"), act: finish } : null,
    secondary: out({ cancel: counts.signed > 0 ? null : cancel }),
  };
}

/** What became of the documents: the host has them once it was told, and not before. */
export function outcome({ integrator, batch: { signed } }, told) {
  if (signed === 1) {
    return told < signed
      ? t("1 signed. It is being handed over to {integrator}: do not close this page yet.", { integrator })
      : t("1 signed. {integrator} has it.", { integrator });
  }
  const said = COUNTED.signed(signed);
  return told < signed
    ? t("{said}. They are being handed over to {integrator}, {told} so far: do not close this page yet.", { said, integrator, told })
    : t("{said}. {integrator} has them.", { said, integrator });
}

/** It is over: each document with its end. */
export function done({ session, list, reasons, told, save }) {
  const { signed, total } = session.batch;
  return {
    name: "done",
    title: signed === total ? t("Signed") : tally(list, { isOver: true }),
    body: [
      signed > 0 ? h("p", { class: "success", id: "outcome" }, outcome(session, told)) : null,
      results(list, reasons, save),
    ],
  };
}

/** Each document and how it ended; the signed ones as a single one is shown. */
function results(list, reasons, save) {
  const row = (item) =>
    h("li", { class: item.state },
      h("span", { class: "name" }, item.name),
      h("span", { class: `state ${item.state}` }, ended(item, reasons)),
      ...(item.signed ? signature(item, save) : []));
  return scrolling(h("ul", { class: "results", tabindex: "0", "aria-label": t("Documents") }, ...list.map(row)));
}

/** When a document was signed, where that can be checked, and a way to save it. */
function signature(item, save) {
  const { at, verifyUrl, fileName } = item.signed;
  return [
    at && h("span", { class: "hint" }, instant(at)),
    verifyUrl && h("span", { class: "check" }, verification(verifyUrl, item.name)),
    h("button", { type: "button", "aria-label": t("Download {name}", { name: fileName }), onclick: () => save(item) }, t("Download")),
  ];
}

function ended(item, reasons) {
  if (item.state !== "pending") return standing(item);
  const why = reasons.get(item.id) ?? item.reason;
  return why ? t("Not signed: {why}", { why: why.message }) : t("Not signed");
}
