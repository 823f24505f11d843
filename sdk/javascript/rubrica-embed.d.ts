/**
 * `<svc-signer>`: the signing iframe of Rúbrica as an element.
 *
 * It opens by itself once it stands in the page and has `frame-url`, `userData` and
 * either `token` or `fetchToken`.
 */

/** A document, as the protocol carries it. */
export interface DocumentObject {
  /** Ends in `.pdf`. */
  fileName: string;
  mime: "application/pdf";
  /** Without a `data:` prefix. */
  base64: string;
}

/** Who is to sign: `email`, and `cuil` or `dni`. */
export interface UserData {
  /** 11 digits, with or without dashes. */
  cuil?: string;
  /** 8 digits. */
  dni?: string;
  email: string;
  name?: string;
  gender?: "M" | "F" | "X";
  /** 10 digits. */
  phone?: string;
  address?: string;
}

export interface Ready {
  /** Size in bytes of the largest document. */
  maxDocumentBytes: number;
  environment: "PREPROD" | "PROD";
  protocol: number;
}

export interface Completed {
  /** The same one where the same signature is told again. */
  eventId: string;
  idemKey?: string;
  signedDocId: string;
  document: {
    fileName: string;
    mime: "application/pdf";
    /** Of the signed bytes, in hex. */
    sha256: string;
    /** In bytes. */
    size: number;
  };
  delivery: {
    mode: "binary" | "url";
    /** With `binary` alone. */
    fileBase64?: string;
    url?: string;
  };
}

/** How a batch ended. */
export interface BatchCompleted {
  loteId: string;
  total: number;
  firmados: number;
  /** Those that are not signed, for whatever reason. */
  fallidos: number;
}

/** What the frame says is wrong, and what the element finds by itself. */
export interface SignerError {
  /**
   * A code of the service, or one of the element's own: `NO_TOKEN`, `NO_FILE`,
   * `NO_READY` (15 s without a word), `NO_ACK` (10 s without an answer).
   */
  code: string;
  message: string;
  category: "retry" | "new_session" | "fix_request" | "terminal";
  retryable: boolean;
  /** Keep it for support; the element's own errors have none. */
  requestId?: string;
  field?: string;
  fieldType?: string;
  allowed?: unknown;
  /** What was thrown, of the element's own errors. */
  cause?: unknown;
}

export interface Message {
  /** With its prefix. */
  type: string;
  payload: unknown;
}

/** The element's events, each a `CustomEvent` with the message's payload as `detail`. */
export interface SvcSignerEvents {
  /** `svc.ready`; the element answers with `svc.init`. */
  ready: CustomEvent<Ready>;
  /** `svc.handshake.ack` */
  connected: CustomEvent<{ sessionExpiresAt: string }>;
  /** `svc.document.loaded` */
  loaded: CustomEvent<{ fileName: string; sha256: string; pages: number; size: number }>;
  /** `svc.signature.completed` */
  completed: CustomEvent<Completed>;
  /** `svc.batch.completed`: a batch is done, each signed document told by `completed`. */
  batchcompleted: CustomEvent<BatchCompleted>;
  /** `svc.rejected`: refused for good; `loteId`: a whole batch. */
  rejected: CustomEvent<{ idemKey?: string; loteId?: string; reason?: string }>;
  /** `svc.cancelled`: left without a signature. */
  cancelled: CustomEvent<{ reason: "signer" | "host" }>;
  /** `svc.signer.unknown` */
  unknown: CustomEvent<Record<string, never>>;
  /**
   * `svc.session.expiring`. With `fetchToken` the element renews the session by
   * itself, unless `preventDefault` is called.
   */
  expiring: CustomEvent<{ expiresAt: string; secondsLeft: number }>;
  /** `svc.error`, or an error of the element's own. */
  error: CustomEvent<SignerError>;
  /** `svc.state` */
  state: CustomEvent<{ state: string }>;
  /** `svc.resize`; followed by itself with the attribute `auto-height`. */
  resize: CustomEvent<{ height: number }>;
  /** Every message of the frame, before its own event; also those of later versions. */
  message: CustomEvent<Message>;
  /** Every message to the frame. It has the session token: keep it out of logs. */
  sent: CustomEvent<Message>;
}

/**
 * Attributes: `frame-url` (required, the iframe's origin), `frame-title` (what screen
 * readers call it, "Firma" unless given), `prefix` (of the messages, `svc` unless
 * given), `auto-height` (follow the height that the frame asks for).
 *
 * Change what is set before it opens; later only `file` takes effect by itself, all
 * else with `restart`.
 */
export class SvcSigner extends HTMLElement {
  /** A session token, fresh from your backend. */
  token?: string;
  /** Fetches one from your backend: at the start, for `restart`, and to renew. */
  fetchToken?: () => Promise<string>;
  userData?: UserData;
  /** What is to be signed; set again it replaces the document. */
  file?: Blob | File | DocumentObject;
  /** One for each wish to sign: kept by you, or made by the element, one for each token. */
  idemKey?: string;
  /** The iframe, while there is one. */
  readonly frame: HTMLIFrameElement | null;
  /** Take the iframe away, until `restart`. */
  close(): void;
  /** Embed anew, with the same `idemKey` and, by `fetchToken`, another token. */
  restart(): void;
  /** Ask the frame to leave; `cancelled` follows. */
  cancel(): void;
  /** Go on with a fresh token. */
  renew(token: string): void;

  addEventListener<Name extends keyof SvcSignerEvents>(
    type: Name,
    listener: (this: SvcSigner, event: SvcSignerEvents[Name]) => unknown,
    options?: boolean | AddEventListenerOptions,
  ): void;
  addEventListener(
    type: string,
    listener: EventListenerOrEventListenerObject,
    options?: boolean | AddEventListenerOptions,
  ): void;
  removeEventListener<Name extends keyof SvcSignerEvents>(
    type: Name,
    listener: (this: SvcSigner, event: SvcSignerEvents[Name]) => unknown,
    options?: boolean | EventListenerOptions,
  ): void;
  removeEventListener(
    type: string,
    listener: EventListenerOrEventListenerObject,
    options?: boolean | EventListenerOptions,
  ): void;
}

/** A file as the protocol carries it. */
export function documentOf(file: Blob | File | DocumentObject): Promise<DocumentObject>;

/**
 * The signed PDF of `completed`, inline or from its address, its hash and size checked.
 * Throws where it is not the announced one, or cannot be fetched.
 */
export function signedDocument(completed: Completed): Promise<File>;

declare global {
  interface HTMLElementTagNameMap {
    "svc-signer": SvcSigner;
  }
  /** What the classic script defines. */
  var RubricaEmbed: {
    SvcSigner: typeof SvcSigner;
    documentOf: typeof documentOf;
    signedDocument: typeof signedDocument;
  };
}
