/** Documents as the protocol carries them: Base64 in, checked bytes out. */

/**
 * Read a file as the protocol wants it.
 * @param {Blob} file
 * @param {string} fileName
 */
export async function documentObject(file, fileName) {
  const url = await new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(/** @type {string} */ (reader.result));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
  // Only the content: with its `data:` prefix the document would not load.
  return { fileName, mime: "application/pdf", base64: url.slice(url.indexOf(",") + 1) };
}

/**
 * Take the signed document out of `signature.completed`, and check it.
 *
 * Inline where it is inline, else from its address: a consumer handles both.
 * @param {any} payload
 */
export async function receiveDocument(payload) {
  const { delivery, document: told } = payload;
  const bytes = delivery.fileBase64
    ? decode(delivery.fileBase64)
    : await download(delivery.url);
  const sha256 = hex(await crypto.subtle.digest("SHA-256", bytes));
  return {
    bytes,
    sha256,
    hashMatches: sha256 === String(told.sha256).toLowerCase(),
    sizeMatches: bytes.length === told.size,
  };
}

/** @param {string} base64 */
function decode(base64) {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

/** @param {string} url */
async function download(url) {
  const answer = await fetch(url, { credentials: "omit", referrerPolicy: "no-referrer" });
  if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
  return new Uint8Array(await answer.arrayBuffer());
}

/** @param {ArrayBuffer} buffer */
function hex(buffer) {
  return Array.from(new Uint8Array(buffer), (byte) =>
    byte.toString(16).padStart(2, "0"),
  ).join("");
}
