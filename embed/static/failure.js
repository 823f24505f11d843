// One kind of error for the page: what the server said, or what the page found.

import { currentLanguage, errorSentence, knownSentence, size, t } from "./i18n.js";

/** Sentences that a code may have instead of its own, by their names in the strings. */
const INSTEAD = ["DOCUMENTS_AWAY", "FAILED_FOR_GOOD"];

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
  if (code === "DOCUMENT_TOO_LARGE") {
    return t("The document is larger than {size}.", { size: size(values.limit) });
  }
  if (code === "INTERNAL" && values.isBrokenOff) {
    return t("The service's answer breaks off on its way, time and again.");
  }
  return errorSentence(code, values);
}

/** What only whoever made the host's page can mend: its signer reads no such words. */
const OF_THE_PAGE = new Set([
  "BODY_NOT_OBJECT",
  "BODY_TOO_LARGE",
  "CONTENT_TYPE",
  "FIELD_INVALID",
  "FIELD_MISSING",
  "FIELD_UNKNOWN",
  "HANDSHAKE_REQUIRED",
  "IDEMKEY_CONFLICT",
  "INIT_INVALID",
  "JSON_INVALID",
  "LEGACY_CREDENTIALS",
]);
const OF_ITS_DOCUMENT = new Set(["BASE64_INVALID", "DOCUMENT_EMPTY", "FILENAME", "MIME"]);

/** Fields that a code alone names. */
const FIELD_OF = { IDEMKEY_CONFLICT: "idemKey" };

export class Failure extends Error {
  #language = currentLanguage();
  #values;
  /** Name of its sentence in the strings; undefined: it is none of theirs. */
  #said;

  /**
   * @param {Object<string, any>} problem members of an RFC 9457 answer.
   * @param {Object<string, unknown>} [values] of its sentence's places.
   */
  constructor(problem, values = problem) {
    super(problem.detail);
    this.#values = values;
    this.#said = [problem.code, ...INSTEAD].find((name) => knownSentence(name, values) === problem.detail);
    this.code = problem.code;
    this.category = problem.category;
    this.requestId = problem.requestId;
    this.problem = { field: FIELD_OF[problem.code], ...problem };
    this.field = this.problem.field;
  }

  /**
   * Say which field of the host's message was the document. The service, which gets
   * bytes and a name, does not know it.
   * @param {string} prefix of the fields' paths.
   */
  ofDocument(prefix) {
    if (this.category !== "fix_request" || this.field) return this;
    this.field = prefix + (this.code === "FILENAME" ? "fileName" : "base64");
    this.problem = { ...this.problem, field: this.field };
    return this;
  }

  /** Whether the page found it by itself. */
  get isOwn() {
    return String(this.requestId).startsWith("p-");
  }

  /** The sentence, in the language in use where it can be had. */
  get sentence() {
    if (this.#language === currentLanguage()) return this.message;
    if (this.isOwn) return sentenceOf(this.code, this.#values);
    return this.#said ? knownSentence(this.#said, this.#values) : this.message;
  }

  /**
   * What the signer reads of an error that the host's page made.
   * @param {string} integrator
   */
  toSigner(integrator) {
    if (OF_THE_PAGE.has(this.code)) {
      return t("This page did not ask for the signature as it should. Tell {integrator}.", { integrator });
    }
    if (OF_ITS_DOCUMENT.has(this.code)) {
      return t("The document did not arrive as it should. Tell {integrator}.", { integrator });
    }
    if (this.code === "SESSION_IN_USE") {
      return t("This page asked for another signature meanwhile. To sign something else, start again at {integrator}.", { integrator });
    }
    return this.sentence;
  }

  /** Say the error to whoever made the host's page, where they look. */
  toConsole() {
    const { code, field, fieldType, allowed, requestId } = this.payload;
    const about = [field, fieldType, allowed && `allowed: ${allowed}`].filter(Boolean).join(", ");
    console.error(`Signing iframe: ${code}${about && ` (${about})`}: ${this.message} Reference ${requestId}.`);
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

/**
 * Whether the service refused a call that no repetition and no new session changes.
 * @param {unknown} error
 */
export function isRefusal(error) {
  return error instanceof Failure && ["fix_request", "terminal"].includes(error.category);
}

/** Any error as one that can be shown and told. */
export function failureOf(error) {
  return error instanceof Failure ? error : ownFailure("INTERNAL");
}

/** The network failed: nothing is known of the call's outcome. */
export class Unreachable extends Error {}

/** The service began to answer, and the answer broke off. */
export class BrokenOff extends Unreachable {
  /**
   * @param {string} message
   * @param {number} [reached] bytes of the answer that came.
   */
  constructor(message, reached = 0) {
    super(message);
    this.reached = reached;
  }
}

/** What was waited for is given up: nobody is told of it. */
export class Stopped extends Error {}

/**
 * An error that the page found by itself.
 * @param {string} code
 * @param {Object<string, unknown>} [values] for the sentence's places.
 */
export function ownFailure(code, values = {}) {
  const category = OWN[code];
  const requestId = `p-${crypto.getRandomValues(new Uint32Array(2)).join("-")}`;
  noted(code, requestId);
  const { field, fieldType, allowed } = values;
  const detail = sentenceOf(code, values);
  return new Failure({ code, category, detail, requestId, field, fieldType, allowed }, values);
}
