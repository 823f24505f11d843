/**
 * The whole protocol of the signing iframe, from the host's side.
 *
 * Copy this file: it needs nothing else. The rules that keep a page safe are
 * two, and both are here: a message counts only when it comes from the iframe's
 * origin (and window), and every message to it names that origin as its target.
 */

const READY_WAIT_MS = 15_000;
const ACK_WAIT_MS = 10_000;

/**
 * @typedef {object} DocumentObject
 * @property {string} fileName
 * @property {"application/pdf"} mime
 * @property {string} base64  without a `data:` prefix
 */

/**
 * Embed the iframe and speak with it until `close` is called.
 *
 * @param {object} options
 * @param {HTMLElement} options.container  where the iframe goes
 * @param {string} options.iframeUrl  origin of the iframe
 * @param {string} options.token  session token, fresh from your own backend
 * @param {object} options.init  payload of `init` without `sessionToken`
 * @param {DocumentObject} [options.laterFile]  sent by `load.file` after the ack
 * @param {"ready"|"load"} [options.startOn]  when `init` is sent
 * @param {string} [options.prefix]
 * @param {string} options.title  name of the iframe for assistive technology
 * @param {(type: string, message: object) => void} options.onMessage  type without prefix
 * @param {(type: string, message: object) => void} [options.onSent]
 * @param {(origin: string) => void} [options.onIgnored]
 * @param {(trouble: "no-ready"|"no-ack") => void} [options.onTrouble]
 */
export function openSigning(options) {
  const { container, iframeUrl, token, init, laterFile, onMessage } = options;
  const prefix = `${options.prefix ?? "svc"}.`;
  const origin = new URL(iframeUrl).origin;
  let handedOver = false;
  let seenReady = false;
  let timer = 0;

  const frame = document.createElement("iframe");
  frame.id = "firma";
  frame.title = options.title;
  frame.allow = "clipboard-read; clipboard-write; camera *; microphone";
  // Lets the service tell you which origin is missing in your registration.
  frame.referrerPolicy = "origin";
  frame.src = `${iframeUrl}/embed/?sessionToken=${encodeURIComponent(token)}`;

  function send(type, payload) {
    const message = { type: prefix + type, payload };
    frame.contentWindow.postMessage(message, origin);
    options.onSent?.(type, message);
  }

  function start() {
    send("init", { ...init, sessionToken: token });
    expectAnswer(ACK_WAIT_MS);
  }

  function receive(event) {
    if (event.source !== frame.contentWindow || event.origin !== origin) {
      options.onIgnored?.(event.origin);
      return;
    }
    const message = event.data;
    if (typeof message?.type !== "string" || !message.type.startsWith(prefix)) return;
    const type = message.type.slice(prefix.length);
    try {
      onMessage(type, message);
    } finally {
      // Whatever became of what you do with a message, the protocol goes on.
      goOn(type);
    }
  }

  function goOn(type) {
    if (type === "ready") {
      seenReady = true;
      // It comes again when the frame was loaded again: init is owed again.
      if (options.startOn !== "load") start();
    }
    if (type === "handshake.ack" || type === "error") clearTimeout(timer);
    if (type === "handshake.ack" && laterFile && !handedOver) {
      handedOver = true;
      send("load.file", laterFile);
    }
  }

  function expectAnswer(waitMs) {
    clearTimeout(timer);
    timer = setTimeout(() => {
      options.onTrouble?.(seenReady ? "no-ack" : "no-ready");
    }, waitMs);
  }

  // Listening comes before the frame exists: `ready` may be quick.
  window.addEventListener("message", receive);
  if (options.startOn === "load") frame.addEventListener("load", start);
  container.replaceChildren(frame);
  expectAnswer(READY_WAIT_MS);

  return {
    frame,
    close() {
      clearTimeout(timer);
      window.removeEventListener("message", receive);
      frame.remove();
    },
  };
}
