// Base64 read as strictly as it is written: one text for one content, no `data:`
// prefix, no blanks, no missing or stray padding.

const SLICE = 4 * 196_608;

/**
 * Decode.
 * @param {string} text
 * @returns {Uint8Array|null} null for what is not canonical Base64.
 */
export function decodeBase64(text) {
  if (text.length === 0 || text.length % 4 !== 0) return null;
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  const bytes = new Uint8Array((text.length / 4) * 3 - padding);
  let at = 0;
  try {
    for (let start = 0; start < text.length; start += SLICE) {
      const slice = text.slice(start, start + SLICE);
      const last = start + SLICE >= text.length;
      const expected = (slice.length / 4) * 3 - (last ? padding : 0);
      const binary = atob(slice);
      // atob skips blanks and forgives padding: then the length tells.
      if (binary.length !== expected) return null;
      for (let i = 0; i < expected; i += 1) bytes[at + i] = binary.charCodeAt(i);
      at += expected;
    }
  } catch {
    return null;
  }
  // The bits that the last quantum does not use must be nought.
  const tail = text.slice(-4);
  return btoa(atob(tail)) === tail ? bytes : null;
}

/**
 * Encode, without blocking the page for large files.
 * @param {Uint8Array} bytes
 * @returns {Promise<string>}
 */
export function encodeBase64(bytes) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => {
      const url = /** @type {string} */ (reader.result);
      resolve(url.slice(url.indexOf(",") + 1));
    };
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(new Blob([bytes]));
  });
}

/**
 * SHA-256.
 * @param {Uint8Array} bytes
 * @returns {Promise<string>} hex.
 */
export async function sha256(bytes) {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
