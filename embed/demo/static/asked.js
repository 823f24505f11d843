/**
 * The request that a mail's link leads to: `?proceso=…&solicitud=…&lote=…`.
 *
 * The integrator's address for mails (`rubrica integrator mail --sign-url`) names these
 * parameters; `lote` is empty unless the mail is about a batch.
 */

const NAMES = ["proceso", "solicitud", "lote"];
const given = new URLSearchParams(location.search);

/** The parameters of the link that are filled in, or null: no request is named. */
export const asked = NAMES.some((name) => given.get(name))
  ? Object.fromEntries(NAMES.filter((name) => given.get(name)).map((name) => [name, given.get(name)]))
  : null;

/** The same as a query, for our own backend. */
export const askedQuery = asked ? `?${new URLSearchParams(asked)}` : "";

/** Signer and document of the request, from our own backend; throws its code. */
export async function readAsked() {
  const answer = await fetch(`/pedido.json${askedQuery}`);
  const told = await answer.json();
  if (!answer.ok) throw new Error(told.code);
  return told;
}
