/** The signed document: what came, what was checked, and the download. */

import { words } from "./words.js";

/**
 * Make an element with properties and children.
 * @param {string} tag
 * @param {object} properties
 * @param {...(Node|string)} children
 */
export function element(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

/**
 * @param {HTMLElement} target
 * @param {any} payload  of `signature.completed`
 * @param {Awaited<ReturnType<import("./bytes.js").receiveDocument>> | null} received
 * @param {string} idemKey  that was sent
 */
export function showResult(target, payload, received, idemKey) {
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
  const properties = { href, download: payload.document.fileName, className: "primary" };
  return element("a", properties, words.download);
}
