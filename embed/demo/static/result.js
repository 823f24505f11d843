/** The signed document: what came, what was checked, and the download. */

import { element } from "./dom.js";
import { consoleLink, consoleRows, paint, signaturePage } from "./visit.js";
import { words } from "./words.js";

/**
 * @param {HTMLElement} target
 * @param {any} payload  of `signature.completed`
 * @param {Awaited<ReturnType<import("./bytes.js").receiveDocument>> | null} received
 * @param {string} idemKey  that was sent
 */
export async function showResult(target, payload, received, idemKey) {
  const { document: told, delivery } = payload;
  target.replaceChildren(
    element("h3", {}, words.resultTitle),
    element("ul", { className: "verdicts" }, ...verdicts(payload, received, idemKey)),
    facts([
      [words.fileName, told.fileName],
      [words.delivery, words[delivery.mode] ?? delivery.mode],
      [words.signedDocId, payload.signedDocId],
      [words.eventId, payload.eventId],
      ["SHA-256", received?.sha256 ?? told.sha256],
    ]),
    element("p", {}, download(payload, received)),
  );
  target.hidden = false;
  target.scrollIntoView({ block: "nearest" });
  await showNext(target, payload);
}

/** What else can be seen of a signature of a trial: its public page, and the console. */
async function showNext(target, payload) {
  const steps = [];
  const page = await signaturePage(payload.signedDocId);
  if (page) {
    const link = { href: page, target: "_blank", rel: "noopener" };
    steps.push(element("li", {}, element("a", link, words.openVerification), ` ${words.verificationTold}`));
  }
  const signIn = consoleLink();
  if (signIn) {
    const keys = element("dl", { className: "keys" }, ...consoleRows());
    steps.push(element("li", {}, signIn, ` ${words.consoleTold}`, keys));
  }
  if (!steps.length) return;
  target.append(element("h3", {}, words.nextTitle), element("ul", { className: "next" }, ...steps));
  paint();
}

function verdicts(payload, received, idemKey) {
  const list = [];
  if (received) {
    const size = words.bytes(received.bytes.length);
    list.push(verdict(received.hashMatches, words.hashGood, words.hashBad));
    list.push(verdict(received.sizeMatches, words.sizeGood(size), words.sizeBad(size)));
  } else {
    list.push(verdict(false, "", words.unchecked));
  }
  list.push(verdict(payload.idemKey === idemKey, words.idemGood, words.idemBad));
  return list;
}

function verdict(good, yes, no) {
  const sign = element("span", { ariaHidden: "true" }, good ? "✓" : "✕");
  return element("li", { className: good ? "good" : "bad" }, sign, ` ${good ? yes : no}`);
}

function facts(pairs) {
  const list = element("dl", {});
  for (const [name, value] of pairs) {
    if (value) list.append(element("div", {}, element("dt", {}, name), element("dd", {}, String(value))));
  }
  return list;
}

function download(payload, received) {
  const href = received
    ? URL.createObjectURL(new Blob([received.bytes], { type: "application/pdf" }))
    : payload.delivery.url;
  const name = signedName(payload.document.fileName);
  const properties = { href, download: name, className: "primary" };
  return element("a", properties, words.download);
}

/** `contrato-firmado.pdf`, as the service names its own downloads: beside the original. */
function signedName(fileName) {
  const stem = fileName.replace(/\.pdf$/i, "");
  return /-firmado$/i.test(stem) ? fileName : `${stem}-firmado.pdf`;
}
