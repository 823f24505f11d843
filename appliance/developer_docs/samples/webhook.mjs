import { Webhook } from "standardwebhooks";

// What a message says. Throws where it is not ours.
// `body` as text, as it came; names of headers in lower case.
export function readMessage(secret, body, headers) {
  return new Webhook(secret).verify(body, headers);
}
