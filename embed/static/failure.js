// One kind of error for the page: what the server said, or what the page found.

import { errorSentence, t } from "./i18n.js";

/** Categories of the codes that the page gives by itself. */
const OWN = {
  HANDSHAKE_REQUIRED: "fix_request",
  BASE64_INVALID: "fix_request",
  MIME: "fix_request",
  INIT_INVALID: "fix_request",
  LEGACY_CREDENTIALS: "fix_request",
  SESSION_IN_USE: "new_session",
  SESSION_TOKEN_EXPIRED: "new_session",
  DOCUMENT_TOO_LARGE: "fix_request",
  DOCUMENT_EMPTY: "fix_request",
  DOCUMENT_CHANGED: "fix_request",
  INTERNAL: "retry",
};

/** Where one code has more to say than its sentence. */
function sentenceOf(code, values) {
  if (code === "BASE64_INVALID" && values.prefix) {
    return t("The document came with a data: prefix; send its Base64 alone.");
  }
  if (code === "BASE64_INVALID" && values.blanks) {
    return t("The document's Base64 has blanks or line breaks; send it in one piece.");
  }
  return errorSentence(code, values);
}

export class Failure extends Error {
  /** @param {Object<string, any>} problem members of an RFC 9457 answer. */
  constructor(problem) {
    super(problem.detail);
    this.code = problem.code;
    this.category = problem.category;
    this.requestId = problem.requestId;
    this.field = problem.field;
    this.problem = problem;
  }

  /** Whether the page found it by itself. */
  get isOwn() {
    return String(this.requestId).startsWith("p-");
  }

  /** The payload of the host's error message. */
  get payload() {
    return {
      code: this.code,
      message: this.message,
      category: this.category,
      retryable: this.category === "retry",
      requestId: this.requestId,
      ...Object.fromEntries(
        ["field", "fieldType", "allowed"]
          .filter((name) => this.problem[name])
          .map((name) => [name, this.problem[name]]),
      ),
    };
  }
}

let noted = () => {};

/**
 * Have every error that the page finds by itself be noted where its reference can be
 * looked up.
 * @param {(code: string, requestId: string) => void} note
 */
export function noteOwnFailures(note) {
  noted = note;
}

/** Any error as one that can be shown and told. */
export function failureOf(error) {
  return error instanceof Failure ? error : ownFailure("INTERNAL");
}

/** The network failed: nothing is known of the call's outcome. */
export class Unreachable extends Error {}

/**
 * An error that the page found by itself.
 * @param {string} code
 * @param {Object<string, unknown>} [values] for the sentence's places.
 */
export function ownFailure(code, values = {}) {
  const category = OWN[code];
  const requestId = `p-${crypto.getRandomValues(new Uint32Array(2)).join("-")}`;
  noted(code, requestId);
  return new Failure({
    code,
    category,
    detail: sentenceOf(code, values),
    requestId,
    field: values.field,
    fieldType: values.fieldType,
    allowed: values.allowed,
  });
}
