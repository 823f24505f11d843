// What the steps of a session for a batch show: its documents, one password for all of
// them, and what became of each. They hold no state.

import { h } from "./dom.js";
import { documentCount, pageCount, t } from "./i18n.js";
import { facts, out } from "./screen.js";
import { LEGAL, message, passwordField, spinner, warnings } from "./steps.js";

const STANDING = {
  pending: ({ seen }) => (seen ? t("Already read") : t("Not read yet")),
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

/** How many of them were read, as a sentence. */
export function readCount({ seen, total }) {
  return t("{seen} of {total} read", { seen, total });
}

/** How many of them are signed, as a sentence. */
export function signedCount({ signed, total }) {
  return t("{signed} of {total} signed", { signed, total });
}

function meter(id, value, most, label) {
  return h("div", { class: "meter" },
    h("label", { for: id, id: `${id}-label` }, label),
    h("progress", { id, value, max: Math.max(most, 1) }));
}

/** Every document of the batch; those that wait can be opened. */
export function documents({ list, counts, integrator, open, go, cancel }) {
  const { unread } = counts;
  return {
    name: "documents",
    title: t("{documents} for you to sign", { documents: documentCount(counts.total) }),
    body: [
      h("p", {}, unread > 0
        ? t("{integrator} asks you to sign them together. Open each one first; then you sign all of them at once, with one password.", { integrator })
        : t("You have read all of them. You sign them at once, with one password.")),
      meter("read-count", counts.seen, counts.total, readCount(counts)),
      h("ul", { class: "choices batch", tabindex: "0", "aria-label": t("Documents") },
        ...list.map((item) => h("li", {}, entry(item, open)))),
    ],
    primary: { label: unread > 0 ? toRead(counts) : toSign(counts), act: go },
    secondary: out({ cancel }),
  };
}

function toRead({ unread, pending }) {
  return unread < pending ? t("Go on reading") : t("Read the first one");
}

function toSign({ pending }) {
  return t("Sign {documents}", { documents: documentCount(pending) });
}

function entry(item, open) {
  const told = [
    h("span", { class: "name" }, item.name),
    h("span", { class: "hint" }, `${pageCount(item.pages)} · `, h("span", { class: `state ${item.seen ? "seen" : ""} ${item.state}` }, standing(item))),
  ];
  if (item.state !== "pending") return h("div", { class: "over" }, ...told);
  return h("button", { type: "button", onclick: () => open(item) }, ...told);
}

/** One of them is read. */
export function reading({ session, at, counts, isLast, previous, list, go, reject, cancel }) {
  return {
    name: "read",
    title: session.document.name,
    body: [
      h("nav", { class: "walk", "aria-label": t("Documents") },
        h("p", { class: "hint" }, `${t("Document {number} of {total}", { number: at + 1, total: counts.total })} · `, readCount(counts)),
        h("button", { type: "button", onclick: list }, t("See all of them")),
        previous && h("button", { type: "button", onclick: previous }, t("Previous document"))),
      message(session),
      warnings(session),
    ],
    primary: { label: isLast ? t("Continue") : t("Next"), act: go },
    secondary: out({ cancel, reject }),
  };
}

/** One signing password for all that waits. */
export function password({ session, list, counts, go, back, cancel }) {
  const { signer, integrator } = session;
  const waiting = list.filter(({ state }) => state === "pending");
  return {
    name: "password",
    focus: "password",
    title: t("Sign {documents}", { documents: documentCount(waiting.length) }),
    body: [
      h("p", { class: "lead", id: "consent" }, consent(waiting.length, counts)),
      passwordField(signer),
      h("p", { class: "legal" }, LEGAL[signer.legal]()),
      h("details", {},
        h("summary", {}, t("What you are signing, and with what")),
        facts([
          [t("You"), `${signer.name}, CUIL ${signer.cuil}`],
          [t("Your mark"), t("Where {integrator} asks for it, or else at the bottom left of the first page", { integrator })],
          [t("Certificate issued by"), signer.issuer],
        ]),
        h("ol", { class: "names", tabindex: "0", "aria-label": t("Documents") }, ...waiting.map(({ name }) => h("li", {}, name)))),
    ],
    primary: { label: t("Sign {documents}", { documents: documentCount(waiting.length) }), act: go },
    back: { label: t("Back"), act: back },
    secondary: out({ cancel }),
  };
}

/** What the password consents to. */
function consent(waiting, { total }) {
  if (waiting === 1) return t("With your password you sign 1 document, which you have read.");
  return waiting === total
    ? t("With your password you sign the {count} documents, all of which you have read.", { count: waiting })
    : t("With your password you sign the {count} documents of {total} that wait, all of which you have read.", { count: waiting, total });
}

/** The appliance works. */
export function signing({ counts, checking }) {
  return {
    name: "signing",
    title: t("Signing"),
    body: [
      spinner(),
      counts ? meter("sign-count", counts.signed, counts.total, signedCount(counts)) : null,
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
    title: signedCount(counts),
    body: [
      h("p", {}, t("Some were not signed. You can try those again, with your password.")),
      results(list, reasons, save),
    ],
    primary: { label: t("Try the rest again"), act: again },
    back: counts.signed > 0 ? { label: t("Leave it at these"), act: finish } : null,
    secondary: out({ cancel: counts.signed > 0 ? null : cancel }),
  };
}

/** What became of the documents: the host has them once it was told, and not before. */
export function outcome({ integrator }, counts, told) {
  const said = signedCount(counts);
  return told < counts.signed
    ? t("{said}. They are being handed over to {integrator}, {told} so far: do not close this page yet.", { said, integrator, told })
    : t("{said}. {integrator} has them.", { said, integrator });
}

/** It is over: each document with its end. */
export function done({ session, list, counts, reasons, told, save }) {
  return {
    name: "done",
    title: counts.signed === counts.total ? t("Signed") : signedCount(counts),
    body: [
      counts.signed > 0 ? h("p", { class: "success", id: "outcome" }, outcome(session, counts, told)) : null,
      results(list, reasons, save),
    ],
  };
}

/** Each document, how it ended, and the signed ones to be saved. */
function results(list, reasons, save) {
  const row = (item) =>
    h("li", { class: item.state },
      h("span", { class: "name" }, item.name),
      h("span", { class: `state ${item.state}` }, ended(item, reasons)),
      item.state === "signed"
        ? h("button", { type: "button", "aria-label": t("Download {name}", { name: item.fileName }), onclick: () => save(item) }, t("Download"))
        : null);
  return h("ul", { class: "results", tabindex: "0", "aria-label": t("Documents") }, ...list.map(row));
}

function ended(item, reasons) {
  if (item.state !== "pending") return standing(item);
  const why = reasons.get(item.id) ?? item.reason;
  return why ? t("Not signed: {why}", { why: why.message }) : t("Not signed");
}
