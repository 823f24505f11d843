/**
 * The same as protocol.js, by `<svc-signer>` of @rubrica/embed.
 *
 * The element does what is written out there: it embeds the iframe, checks who speaks
 * and sends `init`. What is left is to say what is signed, and to listen.
 */

const TROUBLES = { NO_READY: "no-ready", NO_ACK: "no-ack" };

/** Whether the SDK has come: an installation may have none. */
export const hasElement = () => customElements.get("svc-signer") !== undefined;

/**
 * Put the element into the page; options as of `openSigning`, but for `startOn`.
 * @param {any} options
 */
export function openElement(options) {
  const { iframeUrl, init, laterFile } = options;
  const prefix = options.prefix ?? "svc";
  const bare = (message) => message.type.slice(prefix.length + 1);
  const signer = document.createElement("svc-signer");
  signer.setAttribute("frame-url", iframeUrl);
  signer.setAttribute("frame-title", options.title);
  signer.setAttribute("prefix", prefix);
  signer.addEventListener("message", ({ detail }) => options.onMessage(bare(detail), detail));
  signer.addEventListener("sent", ({ detail }) => options.onSent?.(bare(detail), detail));
  signer.addEventListener("connected", () => { if (laterFile) signer.file = laterFile; });
  signer.addEventListener("error", ({ detail }) => {
    if (TROUBLES[detail.code]) options.onTrouble?.(TROUBLES[detail.code]);
  });
  signer.token = options.token;
  signer.idemKey = init.idemKey;
  signer.userData = init.userData;
  if (init.autoLoadFile) signer.file = init.autoLoadFile;

  /** For the log alone: the element hears nobody but its frame. */
  function ignored({ source, origin }) {
    const isItsFrame = source === signer.frame?.contentWindow;
    if (!isItsFrame || origin !== new URL(iframeUrl).origin) options.onIgnored?.(origin);
  }
  window.addEventListener("message", ignored);
  options.container.replaceChildren(signer);

  return {
    close() {
      window.removeEventListener("message", ignored);
      signer.remove();
    },
  };
}
