/** The live log of messages, with secrets and documents shortened. */

import { element } from "./dom.js";
import { words } from "./words.js";

const MOST_ENTRIES = 200;
const SHORTENED = new Set(["sessionToken", "tokenSession", "base64", "fileBase64"]);
const ARROWS = { toFrame: "→", fromFrame: "←", backend: "⇄", ignored: "✕" };

/**
 * Write an entry.
 * @param {"toFrame"|"fromFrame"|"backend"|"ignored"} kind
 * @param {{type?: string, payload?: unknown}} message
 */
export function log(kind, message) {
  const list = document.getElementById("log");
  const now = new Date();
  const time = element("time", { dateTime: now.toISOString() }, now.toTimeString().slice(0, 8));
  const arrow = element("span", { className: "arrow", ariaHidden: "true" }, ARROWS[kind]);
  const way = element("span", { className: "way" }, words[kind]);
  const name = element("code", {}, message.type);
  const item = element("li", { className: kind });
  if (message.payload === undefined) {
    item.append(element("p", {}, time, arrow, way, name));
  } else {
    const text = JSON.stringify(message.payload, shorten, 2);
    const head = element("summary", {}, time, arrow, way, name);
    item.append(element("details", {}, head, element("pre", {}, text)));
  }
  list.append(item);
  while (list.children.length > MOST_ENTRIES) list.firstElementChild.remove();
  list.parentElement.scrollTop = list.parentElement.scrollHeight;
}

function shorten(key, value) {
  if (!SHORTENED.has(key) || typeof value !== "string") return value;
  return words.omitted(value.length);
}
