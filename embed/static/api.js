// The same-origin API. The bearer lives in this module's memory and nowhere else.

import { Failure, Unreachable } from "./failure.js";
import { currentLanguage } from "./i18n.js";

let bearer = null;
let answered = () => {};

/** Have something done whenever the service has answered. */
export function whenAnswered(act) {
  answered = act;
}

/** Whether the page has a session of its own. */
export function hasSession() {
  return bearer !== null;
}

/**
 * Give the token of init for a bearer.
 * @param {Object<string, unknown>} body
 */
export async function openSession(body) {
  const opened = await call("init", { body });
  ({ bearer } = opened);
  return opened.session;
}

/**
 * Go on with a new token.
 * @param {string} sessionToken
 */
export async function renewSession(sessionToken) {
  const opened = await call("renew", { body: { sessionToken } });
  ({ bearer } = opened);
  return opened.session;
}

/**
 * Call the API.
 * @param {string} path below `/embed/api/`.
 * @param {{body?: object, file?: Uint8Array, fileName?: string, own?: boolean,
 *   raw?: boolean}} [how] own: the file is the signer's, not the host's.
 * @returns {Promise<any>} the JSON, or the bytes when `raw`.
 */
export async function call(path, how = {}) {
  const headers = { "Accept-Language": currentLanguage() };
  if (bearer !== null) headers.Authorization = `Bearer ${bearer}`;
  let body;
  if (how.file) {
    body = how.file;
    headers["Content-Type"] = "application/pdf";
    headers["X-File-Name"] = encodeURIComponent(how.fileName ?? "");
    headers["X-File-From"] = how.own ? "signer" : "host";
  } else if (how.body) {
    body = JSON.stringify(how.body);
    headers["Content-Type"] = "application/json";
  }
  let answer;
  try {
    answer = await fetch(`/embed/api/${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers,
      body,
      credentials: "omit",
      cache: "no-store",
      redirect: "error",
    });
    answered();
    if (answer.ok) {
      return how.raw ? new Uint8Array(await answer.arrayBuffer()) : await answer.json();
    }
  } catch (error) {
    throw new Unreachable(String(error));
  }
  throw new Failure(await problemOf(answer));
}

async function problemOf(answer) {
  try {
    return await answer.json();
  } catch {
    // A proxy's own page: its text is not ours to show.
    return {
      code: answer.status === 413 ? "BODY_TOO_LARGE" : "OVERLOADED",
      category: answer.status < 500 ? "fix_request" : "retry",
      detail: `HTTP ${answer.status}`,
      requestId: answer.headers.get("X-Request-Id") ?? "-",
    };
  }
}
