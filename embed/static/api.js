// The same-origin API. The bearer lives in this module's memory and nowhere else.

import { BrokenOff, Failure, Stopped, Unreachable, ownFailure } from "./failure.js";
import { currentLanguage } from "./i18n.js";

/** A file at least so large is sent in a way that tells how much of it has gone. */
const TOLD_FROM = 262_144;
/** Calls that go on when the signer leaves: what they do is done, or is the leaving. */
const KEPT = new Set([
  "cancel", "completed", "finish", "init", "legacy", "note", "reject", "renew", "seen", "sent", "sign", "sign-batch",
]);
const NO_BODY = new Set([204, 205, 304]);

let bearer = null;
let answered = () => {};
/** Ends each call that may be given up. */
const pending = new Set();

/** Give up what is waited for, where that may be: each such call ends as `Stopped`. */
export function stopCalls() {
  for (const each of pending) each.abort();
}

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
 * @returns {Promise<object|null>} null: the token is of another session than the page's.
 */
export async function openSession(body) {
  const opened = await call("init", { body });
  if (opened.isOther) return null;
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
 *   raw?: boolean, signal?: AbortSignal,
 *   progress?: (done: number, total: number) => void}} [how] own: the file is the
 *   signer's, not the host's; signal: gives it up; progress: bytes of the file that
 *   have gone, or, with `raw`, have come.
 * @returns {Promise<any>} the JSON, or the bytes when `raw`.
 */
export async function call(path, how = {}) {
  return ask(path, how, async (answer) => {
    if (!how.raw) return answer.json();
    const total = Number(answer.headers.get("Content-Length"));
    if (!total) return new Uint8Array(await answer.arrayBuffer());
    const bytes = new Uint8Array(total);
    let at = 0;
    try {
      for await (const piece of piecesOf(answer)) {
        bytes.set(piece, at);
        at += piece.length;
        how.progress?.(at, total);
      }
    } catch (error) {
      throw new BrokenOff(String(error), at);
    }
    if (at !== total) throw new BrokenOff("the answer ended early", at);
    return bytes;
  });
}

/**
 * Fetch a part of a stored file, piece by piece as it comes.
 * @param {string} path below `/embed/api/`.
 * @param {{start: number, end: number, sha256: string, signal: AbortSignal}} part
 * @param {(piece: Uint8Array, at: number) => void} take each piece, and its offset.
 *   Where the file cannot be had in parts, all of it comes.
 */
export async function callPart(path, { start, end, sha256, signal }, take) {
  const tag = `"${sha256}"`;
  const headers = { Range: `bytes=${start}-${end - 1}`, "If-Range": tag };
  await ask(path, { headers, signal }, async (answer) => {
    // Of another file nothing is taken.
    if (answer.headers.get("ETag") !== tag) throw ownFailure("DOCUMENT_CHANGED");
    let at = answer.status === 206 ? start : 0;
    for await (const piece of piecesOf(answer)) {
      take(piece, at);
      at += piece.length;
    }
    if (at < end) throw new BrokenOff("the answer ended early");
  });
}

async function ask(path, how, read) {
  const ends = new AbortController();
  const stop = () => ends.abort();
  if (how.signal?.aborted) stop();
  how.signal?.addEventListener("abort", stop);
  if (!KEPT.has(path.split("?")[0])) pending.add(ends);
  let isAnswered = false;
  try {
    const answer = await sent(path, how, ends.signal);
    answered();
    isAnswered = answer.ok;
    if (isAnswered) return await read(answer);
    throw new Failure(await problemOf(answer));
  } catch (error) {
    if (ends.signal.aborted) throw new Stopped();
    if (error instanceof Failure || error instanceof Unreachable) throw error;
    throw new (isAnswered ? BrokenOff : Unreachable)(String(error));
  } finally {
    how.signal?.removeEventListener("abort", stop);
    pending.delete(ends);
    // Whatever of the answer is not read any more need not come.
    stop();
  }
}

function sent(path, how, signal) {
  const headers = { "Accept-Language": currentLanguage(), ...how.headers };
  if (bearer !== null) headers.Authorization = `Bearer ${bearer}`;
  let body;
  if (how.file) {
    body = how.file;
    headers["Content-Type"] = "application/pdf";
    headers["X-File-Name"] = encodeURIComponent(how.fileName ?? "");
    headers["X-File-From"] = how.own ? "signer" : "host";
    if (how.progress && body.length >= TOLD_FROM) {
      return sentAndTold(`/embed/api/${path}`, headers, body, signal, how.progress);
    }
  } else if (how.body) {
    body = JSON.stringify(how.body);
    headers["Content-Type"] = "application/json";
  }
  return fetch(`/embed/api/${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers,
    body,
    credentials: "omit",
    cache: "no-store",
    redirect: "error",
    signal,
  });
}

/** Send a file and tell how much of it has gone, which `fetch` does not. */
function sentAndTold(url, headers, body, signal, progress) {
  const request = new XMLHttpRequest();
  request.open("POST", url);
  for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
  return new Promise((resolve, reject) => {
    request.upload.onprogress = ({ loaded }) => progress(loaded, body.length);
    request.onload = () => {
      const { status, responseText } = request;
      const told = { "X-Request-Id": request.getResponseHeader("X-Request-Id") ?? "-" };
      resolve(new Response(NO_BODY.has(status) ? null : responseText, { status, headers: told }));
    };
    request.onerror = request.onabort = () => reject(new TypeError("not sent"));
    signal.addEventListener("abort", () => request.abort());
    // Out of the page's own memory while it is on its way.
    request.send(new Blob([body]));
  });
}

async function* piecesOf(answer) {
  const reader = answer.body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield value;
  }
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
