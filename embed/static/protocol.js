// Made by `python -m embed.generate` from embed/protocol.py.

/**
 * The frame has loaded and can receive init; once more where none came.
 * @typedef {object} ReadyPayload
 * @property {number} [protocol]
 * @property {string} [environment]
 * @property {number} [maxDocumentBytes]
 */

/**
 * A valid init was received; every one is answered.
 * @typedef {object} HandshakeAckPayload
 * @property {number} [protocol]
 * @property {string} [sessionExpiresAt]
 */

/**
 * The document is signed.
 * @typedef {object} SignatureCompletedPayload
 * @property {string} eventId
 * @property {string} [idemKey]
 * @property {string} signedDocId
 * @property {object} document
 * @property {string} document.fileName
 * @property {string} document.sha256
 * @property {number} document.size
 * @property {string} document.mime
 * @property {object} delivery
 * @property {string} delivery.mode
 * @property {string} [delivery.fileBase64]
 * @property {string} [delivery.url]
 */

/**
 * An error occurred in the process.
 * @typedef {object} ErrorPayload
 * @property {string} code
 * @property {string} message
 * @property {string} category
 * @property {boolean} [retryable]
 * @property {string} requestId
 * @property {string} [field]
 * @property {string} [fieldType]
 * @property {string[]} [allowed]
 */

/**
 * Opens the conversation.
 * @typedef {object} InitPayload
 * @property {string} nonce
 * @property {string} [idemKey]
 * @property {string} sessionToken
 * @property {object} userData
 * @property {string} [userData.dni]
 * @property {string} [userData.cuil]
 * @property {string} userData.email
 * @property {string} [userData.gender]
 * @property {string} [userData.phone]
 * @property {string} [userData.name]
 * @property {string} [userData.address]
 * @property {object} [autoLoadFile]
 * @property {string} autoLoadFile.fileName
 * @property {string} [autoLoadFile.mime]
 * @property {string} [autoLoadFile.base64]
 */

/**
 * Loads or replaces the document.
 * @typedef {object} LoadFilePayload
 * @property {string} fileName
 * @property {string} [mime]
 * @property {string} [base64]
 */

/**
 * The document's first page is on the screen.
 * @typedef {object} DocumentLoadedPayload
 * @property {string} fileName
 * @property {string} sha256
 * @property {number} pages
 * @property {number} size
 */

/**
 * The frame is in another state (docs/frame.md).
 * @typedef {object} StatePayload
 * @property {string} state
 */

/**
 * The session ends soon; answer with `session.renew`.
 * @typedef {object} SessionExpiringPayload
 * @property {string} expiresAt
 * @property {number} secondsLeft
 */

/**
 * Goes on with a new session token; nothing done is lost.
 * @typedef {object} SessionRenewPayload
 * @property {string} sessionToken
 */

/**
 * The host leaves; what waits for a signature goes on waiting.
 * @typedef {object} CancelPayload
 */

/**
 * Somebody left without a signature; what waits for one goes on waiting.
 * @typedef {object} CancelledPayload
 * @property {string} reason
 */

/**
 * The signer refused to sign, for good: the request is over.
 * @typedef {object} RejectedPayload
 * @property {string} [idemKey]
 * @property {string} [loteId]
 * @property {string} [reason]
 */

/**
 * A batch is done: each signed document was told of before.
 * @typedef {object} BatchCompletedPayload
 * @property {string} loteId
 * @property {number} total
 * @property {number} firmados
 * @property {number} fallidos
 */

/**
 * The signer's data match nobody who may sign; no more is told.
 * @typedef {object} SignerUnknownPayload
 */

/**
 * The height that the frame's content would fill.
 * @typedef {object} ResizePayload
 * @property {number} height
 */

export const PROTOCOL_VERSION = 1;

export const SMALL_MESSAGE = 65536;

export const LEGACY_FIELD = "apiKey";

export const MESSAGES = {
  "ready": {
    "direction": "toHost",
    "fields": [
      {
        "name": "protocol",
        "kind": "integer"
      },
      {
        "name": "environment",
        "kind": "string"
      },
      {
        "name": "maxDocumentBytes",
        "kind": "integer"
      }
    ]
  },
  "handshake.ack": {
    "direction": "toHost",
    "fields": [
      {
        "name": "protocol",
        "kind": "integer"
      },
      {
        "name": "sessionExpiresAt",
        "kind": "string"
      }
    ]
  },
  "signature.completed": {
    "direction": "toHost",
    "fields": [
      {
        "name": "eventId",
        "kind": "string",
        "required": true
      },
      {
        "name": "idemKey",
        "kind": "string"
      },
      {
        "name": "signedDocId",
        "kind": "string",
        "required": true
      },
      {
        "name": "document",
        "kind": "object",
        "required": true,
        "fields": [
          {
            "name": "fileName",
            "kind": "string",
            "required": true
          },
          {
            "name": "sha256",
            "kind": "string",
            "required": true
          },
          {
            "name": "size",
            "kind": "integer",
            "required": true
          },
          {
            "name": "mime",
            "kind": "string",
            "required": true
          }
        ]
      },
      {
        "name": "delivery",
        "kind": "object",
        "required": true,
        "fields": [
          {
            "name": "mode",
            "kind": "string",
            "required": true,
            "allowed": [
              "binary",
              "url"
            ]
          },
          {
            "name": "fileBase64",
            "kind": "string"
          },
          {
            "name": "url",
            "kind": "string"
          }
        ]
      }
    ]
  },
  "error": {
    "direction": "toHost",
    "fields": [
      {
        "name": "code",
        "kind": "string",
        "required": true
      },
      {
        "name": "message",
        "kind": "string",
        "required": true
      },
      {
        "name": "category",
        "kind": "string",
        "required": true,
        "allowed": [
          "retry",
          "terminal",
          "new_session",
          "fix_request"
        ]
      },
      {
        "name": "retryable",
        "kind": "boolean"
      },
      {
        "name": "requestId",
        "kind": "string",
        "required": true
      },
      {
        "name": "field",
        "kind": "string"
      },
      {
        "name": "fieldType",
        "kind": "string"
      },
      {
        "name": "allowed",
        "kind": "array"
      }
    ]
  },
  "init": {
    "direction": "toFrame",
    "fields": [
      {
        "name": "nonce",
        "kind": "string",
        "required": true,
        "most": 128
      },
      {
        "name": "idemKey",
        "kind": "string",
        "most": 128
      },
      {
        "name": "sessionToken",
        "kind": "string",
        "required": true,
        "most": 128
      },
      {
        "name": "userData",
        "kind": "object",
        "required": true,
        "fields": [
          {
            "name": "dni",
            "kind": "string",
            "pattern": "^(?: *[0-9]{7,8} *)$"
          },
          {
            "name": "cuil",
            "kind": "string",
            "pattern": "^(?: *[0-9]{2}-?[0-9]{8}-?[0-9] *)$"
          },
          {
            "name": "email",
            "kind": "string",
            "required": true,
            "most": 254,
            "pattern": "^(?: *[^@ \\t\\r\\n]{1,64}@[^@ \\t\\r\\n]{1,189} *)$"
          },
          {
            "name": "gender",
            "kind": "string",
            "allowed": [
              "M",
              "F",
              "X"
            ]
          },
          {
            "name": "phone",
            "kind": "string",
            "pattern": "^(?:[0-9]{10})$"
          },
          {
            "name": "name",
            "kind": "string",
            "most": 200
          },
          {
            "name": "address",
            "kind": "string",
            "most": 300
          }
        ]
      },
      {
        "name": "autoLoadFile",
        "kind": "object",
        "fields": [
          {
            "name": "fileName",
            "kind": "string",
            "required": true,
            "most": 255
          },
          {
            "name": "mime",
            "kind": "string",
            "most": 100
          },
          {
            "name": "base64",
            "kind": "string"
          }
        ]
      }
    ]
  },
  "load.file": {
    "direction": "toFrame",
    "fields": [
      {
        "name": "fileName",
        "kind": "string",
        "required": true,
        "most": 255
      },
      {
        "name": "mime",
        "kind": "string",
        "most": 100
      },
      {
        "name": "base64",
        "kind": "string"
      }
    ]
  },
  "document.loaded": {
    "direction": "toHost",
    "fields": [
      {
        "name": "fileName",
        "kind": "string",
        "required": true
      },
      {
        "name": "sha256",
        "kind": "string",
        "required": true
      },
      {
        "name": "pages",
        "kind": "integer",
        "required": true
      },
      {
        "name": "size",
        "kind": "integer",
        "required": true
      }
    ]
  },
  "state": {
    "direction": "toHost",
    "fields": [
      {
        "name": "state",
        "kind": "string",
        "required": true
      }
    ]
  },
  "session.expiring": {
    "direction": "toHost",
    "fields": [
      {
        "name": "expiresAt",
        "kind": "string",
        "required": true
      },
      {
        "name": "secondsLeft",
        "kind": "integer",
        "required": true
      }
    ]
  },
  "session.renew": {
    "direction": "toFrame",
    "fields": [
      {
        "name": "sessionToken",
        "kind": "string",
        "required": true,
        "most": 128
      }
    ]
  },
  "cancel": {
    "direction": "toFrame",
    "fields": []
  },
  "cancelled": {
    "direction": "toHost",
    "fields": [
      {
        "name": "reason",
        "kind": "string",
        "required": true,
        "allowed": [
          "signer",
          "host"
        ]
      }
    ]
  },
  "rejected": {
    "direction": "toHost",
    "fields": [
      {
        "name": "idemKey",
        "kind": "string"
      },
      {
        "name": "loteId",
        "kind": "string"
      },
      {
        "name": "reason",
        "kind": "string"
      }
    ]
  },
  "batch.completed": {
    "direction": "toHost",
    "fields": [
      {
        "name": "loteId",
        "kind": "string",
        "required": true
      },
      {
        "name": "total",
        "kind": "integer",
        "required": true
      },
      {
        "name": "firmados",
        "kind": "integer",
        "required": true
      },
      {
        "name": "fallidos",
        "kind": "integer",
        "required": true
      }
    ]
  },
  "signer.unknown": {
    "direction": "toHost",
    "fields": []
  },
  "resize": {
    "direction": "toHost",
    "fields": [
      {
        "name": "height",
        "kind": "integer",
        "required": true
      }
    ]
  }
};

export const STATES = {
  "boot": {
    "accepts": [
      "init"
    ],
    "emits": [],
    "leads": [
      "ready",
      "blocked"
    ]
  },
  "ready": {
    "accepts": [
      "init"
    ],
    "emits": [
      "ready",
      "cancelled"
    ],
    "leads": [
      "connected",
      "blocked",
      "cancelled"
    ]
  },
  "blocked": {
    "accepts": [
      "init",
      "session.renew"
    ],
    "emits": [
      "ready",
      "error"
    ],
    "leads": [
      "connected"
    ]
  },
  "connected": {
    "accepts": [
      "init",
      "load.file",
      "session.renew",
      "cancel"
    ],
    "emits": [
      "handshake.ack"
    ],
    "leads": [
      "loading",
      "authorising",
      "signed",
      "blocked",
      "cancelled",
      "rejected"
    ]
  },
  "loading": {
    "accepts": [
      "init",
      "load.file",
      "session.renew",
      "cancel"
    ],
    "emits": [
      "document.loaded",
      "error"
    ],
    "leads": [
      "loading",
      "reviewing",
      "connected",
      "authorising",
      "signed",
      "blocked",
      "cancelled",
      "rejected"
    ]
  },
  "reviewing": {
    "accepts": [
      "init",
      "load.file",
      "session.renew",
      "cancel"
    ],
    "emits": [
      "document.loaded"
    ],
    "leads": [
      "loading",
      "authorising",
      "connected",
      "signed",
      "blocked",
      "cancelled",
      "rejected"
    ]
  },
  "authorising": {
    "accepts": [
      "init",
      "session.renew",
      "cancel"
    ],
    "emits": [
      "error"
    ],
    "leads": [
      "loading",
      "reviewing",
      "connected",
      "submitting",
      "signed",
      "failed",
      "blocked",
      "cancelled",
      "rejected"
    ]
  },
  "submitting": {
    "accepts": [
      "init",
      "session.renew"
    ],
    "emits": [],
    "leads": [
      "signed",
      "failed",
      "authorising",
      "reconciling",
      "blocked"
    ]
  },
  "reconciling": {
    "accepts": [
      "init",
      "session.renew"
    ],
    "emits": [],
    "leads": [
      "signed",
      "failed",
      "authorising",
      "blocked"
    ]
  },
  "signed": {
    "accepts": [
      "init"
    ],
    "emits": [
      "signature.completed",
      "batch.completed"
    ],
    "leads": [
      "connected"
    ]
  },
  "failed": {
    "accepts": [
      "init"
    ],
    "emits": [
      "error",
      "batch.completed"
    ],
    "leads": [
      "connected"
    ]
  },
  "cancelled": {
    "accepts": [
      "init"
    ],
    "emits": [
      "cancelled"
    ],
    "leads": [
      "connected"
    ]
  },
  "rejected": {
    "accepts": [
      "init"
    ],
    "emits": [
      "rejected"
    ],
    "leads": [
      "connected"
    ]
  }
};
