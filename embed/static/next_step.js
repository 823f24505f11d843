// What a signer can do about an error: read after its sentence, where that does not say it.

import { t } from "./i18n.js";

/** The sentence says what to do, or the step does where the error is read. */
const SAYS_IT = new Set([
  "ACTIVATION_EXPIRED",
  "ACTIVATION_INVALID",
  "BASE64_INVALID",
  "BODY_NOT_OBJECT",
  "BODY_TOO_LARGE",
  "BUSY",
  "CONTENT_TYPE",
  "DOCUMENT_EMPTY",
  "FIELD_INVALID",
  "FIELD_MISSING",
  "FIELD_UNKNOWN",
  "FILENAME",
  "HANDSHAKE_REQUIRED",
  "IDEMKEY_CONFLICT",
  "INIT_INVALID",
  "JSON_INVALID",
  "LEGACY_CREDENTIALS",
  "MIME",
  "OTP_INVALID",
  "RATE_LIMITED",
  "SESSION_CODES",
  "SESSION_IN_USE",
  "SIGN_PASSWORD_WRONG",
]);
/** The sentence says to try again, and not what to do if that fails for long. */
const SAYS_AGAIN = new Set([
  "DOCUMENT_QUOTA",
  "HSM_UNAVAILABLE",
  "IN_PROGRESS",
  "OVERLOADED",
  "REVOCATION_UNAVAILABLE",
  "STORAGE_FULL",
  "STORE_UNAVAILABLE",
  "TSA_UNAVAILABLE",
]);

/**
 * What to do next.
 * @param {{code: string, category: string}} failure
 * @param {string} integrator
 * @param {boolean} [ofFile] it is about a file that the signer chose.
 * @returns {string|null} null where the error's own sentence says it.
 */
export function nextStep({ code, category }, integrator, ofFile = false) {
  if (ofFile && category === "fix_request") return t("Choose another file, or tell {integrator}.", { integrator });
  if (SAYS_IT.has(code)) return null;
  if (SAYS_AGAIN.has(code) && category === "retry") return t("If it goes on, tell {integrator}.", { integrator });
  if (category === "retry") return t("Try again in a moment. If it goes on, tell {integrator}.", { integrator });
  if (category === "new_session") return t("Go back to {integrator} and start again; what you signed stays signed.", { integrator });
  if (category === "terminal") return t("Ask {integrator} about it.", { integrator });
  return t("Change it and try again, or tell {integrator}.", { integrator });
}
