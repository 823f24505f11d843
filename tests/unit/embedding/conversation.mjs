// Plays a host and a service around the page's conversation, and a signer who leaves.
//
//   node conversation.mjs FOLDER SCENE
//
// FOLDER: the page's modules. The answer is one line of JSON.

const [folder, scene] = process.argv.slice(2);
globalThis.document = { documentElement: { dataset: {} }, getElementById: () => null };
globalThis.reportError = (error) => {
  throw error;
};
const { Conversation } = await import(`file://${folder}/conversation.js`);
const { Machine } = await import(`file://${folder}/machine.js`);

/** Calls of the service that were asked for, and those that wait to be answered. */
const calls = [];
const held = [];
let isHeld = false;
const turn = () => new Promise((resume) => setTimeout(resume, 0));

globalThis.fetch = async (url, { body, headers }) => {
  const path = url.replace("/embed/api/", "");
  const { init, reason } = JSON.parse(body);
  calls.push([path, reason ?? init.sessionToken, headers.Authorization ?? null]);
  if (path === "init" && isHeld) await new Promise((resume) => held.push(resume));
  const { sessionToken } = init ?? {};
  const opened = { bearer: `b-${sessionToken}`, session: { id: sessionToken, state: "open", expiresAt: "soon" } };
  return new Response(JSON.stringify(path === "init" ? opened : {}), { status: 200 });
};

const posted = [];
const machine = new Machine(() => {});
machine.move("ready");
const flow = {
  session: null,
  leaving: Promise.resolve(),
  persist: (ask) => ask(),
  guarded: (act) => act(),
  begin(session) {
    this.session = session;
  },
  resume: async () => undefined,
  refuse: (failure) => posted.push(`refused ${failure.code}`),
  block: (failure) => posted.push(`blocked ${failure.code}`),
};
const host = { pin() {}, post: (name) => posted.push(name) };
const conversation = new Conversation({ kind: "", session: "p" }, host, machine, flow, { set() {} });
const init = (sessionToken) => {
  const userData = { email: "a@b.example", dni: "12345678" };
  conversation.receive("init", { nonce: "n", sessionToken, userData }, "https://host.example");
};
const until = async (holds) => {
  while (!holds()) await turn();
  // Whatever else was begun by then comes to its end.
  for (let more = 0; more < 20; more += 1) await turn();
};

const SCENES = {
  /** The signer leaves while the first init is being answered; the host begins again. */
  async left() {
    isHeld = true;
    init("one");
    await until(() => held.length === 1);
    machine.move("cancelled");
    held.pop()();
    await until(() => calls.length > 1 || posted.length > 0);
    const first = { calls: calls.splice(0), posted: posted.splice(0), state: machine.state };
    isHeld = false;
    init("one");
    await until(() => posted.length > 0);
    return { ...first, again: { calls, posted, state: machine.state } };
  },
  /** A session is being left while another token is being answered. */
  async replaced() {
    init("one");
    await until(() => machine.is("connected"));
    isHeld = true;
    init("two");
    await until(() => held.length === 1);
    let end;
    flow.leaving = new Promise((resolve) => (end = resolve));
    held.pop()();
    await until(() => true);
    machine.move("cancelled");
    end();
    await until(() => calls.length > 2 || posted.length > 1);
    return { calls, posted, state: machine.state };
  },
};

console.log(JSON.stringify(await SCENES[scene]()));
