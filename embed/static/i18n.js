// What people read, in Spanish of Argentina or English. Keys are the English
// sentences; the role serves the others from its gettext catalogue.

let language = "es";
let messages = {};
let errors = {};

/**
 * Load a language.
 * @param {string} wanted `es` or `en`.
 * @param {string} base address of the static files.
 */
export async function loadLanguage(wanted, base) {
  const answer = await fetch(`${base}/strings/${wanted}.json`);
  const told = await answer.json();
  ({ messages, errors } = told);
  language = wanted;
  document.documentElement.lang = wanted === "es" ? "es-AR" : "en";
}

/** @returns {string} the language in use. */
export function currentLanguage() {
  return language;
}

/**
 * Say an English sentence in the language in use.
 * @param {string} msgid
 * @param {Object<string, unknown>} [values] for its {places}.
 */
export function t(msgid, values = {}) {
  return filled(messages[msgid] ?? msgid, (name, whole) => values[name] ?? whole);
}

/**
 * Put values into the places of a sentence. A name that ends with a dot ("S.A.") brings
 * the full stop of the sentence along.
 * @param {string} text
 * @param {(name: string, whole: string) => unknown} valueOf
 */
function filled(text, valueOf) {
  return text.replace(/\{(\w+)\}(\.(?!\.))?/g, (whole, name, stop = "") => {
    const value = String(valueOf(name, `{${name}}`));
    return value.endsWith(".") ? value : value + stop;
  });
}

/**
 * The sentence of an error code.
 * @param {string} code
 * @param {Object<string, unknown>} [values]
 */
export function errorSentence(code, values = {}) {
  return filled(errors[code] ?? code, (name) => values[name] ?? "?");
}

/**
 * The same, where all its places are known; else null.
 * @param {string} code
 * @param {Object<string, unknown>} values
 */
export function knownSentence(code, values) {
  const places = [...(errors[code] ?? "{}").matchAll(/\{(\w*)\}/g)];
  const isWhole = places.every(([, name]) => values[name] !== undefined);
  return isWhole ? errorSentence(code, values) : null;
}

/** @param {number} count of pages, said with their word. */
export function pageCount(count) {
  return count === 1 ? t("1 page") : t("{count} pages", { count });
}

/** @param {number} count of documents, said with their word. */
export function documentCount(count) {
  return count === 1 ? t("1 document") : t("{count} documents", { count });
}

/** @param {number} bytes */
export function size(bytes) {
  const format = (value, digits) =>
    value.toLocaleString(language === "es" ? "es-AR" : "en", {
      maximumFractionDigits: digits,
    });
  if (bytes < 1000) return `${format(bytes, 0)} B`;
  if (bytes < 1e6) return `${format(bytes / 1000, 0)} kB`;
  return `${format(bytes / 1e6, 1)} MB`;
}

const ARGENTINA_S = -3 * 3600;

/**
 * The form that console, stamp and pages have too.
 * @param {string} iso an instant.
 * @returns {string} `22/11/2026 14:38 (UTC-3)`, in English `2026-11-22 14:38 (UTC-3)`.
 */
export function instant(iso) {
  const local = new Date(Date.parse(iso) + ARGENTINA_S * 1000).toISOString();
  const day = local.slice(0, 10);
  const date = language === "es" ? day.split("-").reverse().join("/") : day;
  return `${date} ${local.slice(11, 16)} (UTC-3)`;
}
