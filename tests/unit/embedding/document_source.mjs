// Plays a service that has a document, and tells what was asked of it.
//
//   node document_source.mjs FOLDER SCENE
//
// FOLDER: the page's modules. The answer is one line of JSON.

const [folder, scene] = process.argv.slice(2);
const { DocumentSource, BLOCK } = await import(`file://${folder}/source.js`);

const SIZE = 5 * BLOCK + 77;
const bytes = Uint8Array.from({ length: SIZE }, (_, at) => (at * 31 + (at >> 8)) % 256);
const hex = (buffer) => Buffer.from(buffer).toString("hex");
const sha256 = hex(await crypto.subtle.digest("SHA-256", bytes));

/** What the service does otherwise, by scene. */
const play = { tag: sha256, served: bytes, ranges: true, losses: 0, hold: null };
/** Problems that the service answers with, one after the other; and the last one always. */
play.problems = [];
play.isOver = true;
/** Offset that no answer comes beyond, and what is answered to who asks from there on. */
play.end = Infinity;
play.beyond = null;
const asked = [];
const waits = [];
const soon = globalThis.setTimeout;
globalThis.setTimeout = (act, ms) => {
  waits.push(ms);
  if (play.isFrozen) return null;
  return soon(act, 0);
};
const problem = (code, more) => {
  const body = JSON.stringify({ code, category: "retry", detail: code, requestId: "r", ...more });
  return new Response(body, { status: 503, headers: { "Content-Type": "application/problem+json" } });
};

globalThis.fetch = async (_url, { headers, signal }) => {
  signal.throwIfAborted();
  const [, first, last] = headers.Range.match(/bytes=(\d+)-(\d+)/).map(Number);
  if (headers["If-Range"] !== `"${sha256}"`) throw new Error("no condition");
  asked.push([first, last + 1]);
  if (play.losses > 0) {
    play.losses -= 1;
    throw new TypeError("no network");
  }
  if (play.problems.length > 0) {
    const [code, more] = play.isOver ? play.problems.shift() : play.problems[0];
    return problem(code, more);
  }
  if (first >= play.end && play.beyond) return problem(play.beyond);
  const [start, end] = play.ranges ? [first, last + 1] : [0, SIZE];
  const body = new ReadableStream({
    async start(controller) {
      signal.addEventListener("abort", () => controller.error(signal.reason));
      // Pieces that end nowhere in particular.
      for (let at = start; at < end; at += 1000) {
        if (signal.aborted) return;
        const piece = play.served.slice(at, Math.min(at + 1000, end, play.end));
        if (piece.length > 0) controller.enqueue(piece);
        if (at + 1000 > play.end) {
          // What was enqueued is read before the break.
          while (controller.desiredSize < 1) await new Promise((resume) => soon(resume, 0));
          controller.error(new TypeError("cut"));
          return;
        }
        if (at - start >= 2 * BLOCK) await play.hold;
      }
      if (!signal.aborted) controller.close();
    },
  });
  return new Response(body, { status: play.ranges ? 206 : 200, headers: { ETag: `"${play.tag}"` } });
};

const source = new DocumentSource("document", { sha256, size: SIZE });
const told = [];
source.progress = (done, total) => told.push([done, total]);
const late = [];
source.late = (why) => late.push(why === null ? "came" : why.seconds ?? "lost");
const failures = [];
source.failed = ({ code }) => failures.push(code);
const kindOf = (promise) => promise.then(() => "right", (error) => error.code ?? error.constructor.name);
const isRight = (part, start) => hex(part) === hex(bytes.slice(start, start + part.length));

const SCENES = {
  async part() {
    const part = await source.read(BLOCK + 5, BLOCK + 9);
    return { length: part.length, isRight: isRight(part, BLOCK + 5), came: source.came };
  },
  async once() {
    await Promise.all([source.read(0, 2 * BLOCK), source.read(BLOCK, 3 * BLOCK)]);
    await source.read(0, 3 * BLOCK);
    return {};
  },
  async all() {
    source.fill();
    const whole = await source.whole;
    const grows = told.every(([done], at) => at === 0 || done >= told[at - 1][0]);
    return { isRight: isRight(whole, 0), grows, first: told[0], last: told.at(-1) };
  },
  async urgent() {
    let letGo;
    play.hold = new Promise((resolve) => (letGo = resolve));
    source.fill();
    while (source.came < 2 * BLOCK) await new Promise((resume) => soon(resume, 0));
    const part = await source.read(SIZE - 3, SIZE);
    letGo();
    await source.whole;
    return { isRight: isRight(part, SIZE - 3) };
  },
  async resting() {
    source.fill();
    source.rest();
    await source.read(0, 1);
    return { came: source.came };
  },
  async other() {
    play.tag = "ab".repeat(32);
    return { read: await kindOf(source.read(0, 9)), whole: await kindOf(source.whole) };
  },
  async forged() {
    play.served = bytes.slice();
    play.served[BLOCK + 7] ^= 1;
    source.fill();
    return { whole: await kindOf(source.whole) };
  },
  async lost() {
    play.losses = 2;
    const part = await source.read(0, 9);
    return { isRight: isRight(part, 0), late };
  },
  async busy() {
    play.problems = [["STORE_UNAVAILABLE", { retryAfter: 7 }], ["INTERNAL"]];
    const part = await source.read(0, 9);
    return { isRight: isRight(part, 0), late, waits, failures };
  },
  async refusing() {
    play.problems = [["STORE_UNAVAILABLE", { retryAfter: 7 }]];
    play.isOver = false;
    source.fill();
    return { whole: await kindOf(source.whole), late, failures };
  },
  async patient() {
    play.problems = [["RATE_LIMITED", { retryAfter: 3600 }]];
    return { read: await kindOf(source.read(0, 9)), late, failures };
  },
  async damaged() {
    play.problems = [["DOCUMENT_DAMAGED", { retryAfter: 60 }]];
    play.isOver = false;
    return { read: await kindOf(source.read(0, 9)), late, failures };
  },
  async damagedLater() {
    play.end = 2 * BLOCK + 5;
    play.beyond = "DOCUMENT_DAMAGED";
    source.fill();
    return { whole: await kindOf(source.whole), failures, bytes: asked };
  },
  async cut() {
    play.end = 2 * BLOCK + 5;
    source.fill();
    return { whole: await kindOf(source.whole), failures, late };
  },
  async mended() {
    play.end = 2 * BLOCK + 5;
    source.fill();
    const whole = await kindOf(source.whole);
    play.end = Infinity;
    const part = await source.read(4 * BLOCK, 4 * BLOCK + 9);
    source.fill();
    return { whole, isRight: isRight(part, 4 * BLOCK), again: await kindOf(source.whole), failures };
  },
  async together() {
    play.problems = [["DOCUMENT_DAMAGED"]];
    play.isOver = false;
    source.fill();
    const reads = [source.read(0, 9), source.read(3 * BLOCK, 3 * BLOCK + 9)];
    return { reads: await Promise.all(reads.map(kindOf)), failures };
  },
  async urgentWhileLate() {
    play.losses = 1;
    play.isFrozen = true;
    source.fill();
    while (late.length === 0) await new Promise((resume) => soon(resume, 0));
    await source.read(SIZE - 3, SIZE);
    source.rest();
    return { late };
  },
  async whole() {
    play.ranges = false;
    const part = await source.read(4 * BLOCK, 4 * BLOCK + 9);
    source.fill();
    return { isRight: isRight(part, 4 * BLOCK), whole: await kindOf(source.whole) };
  },
  async closed() {
    const reading = kindOf(source.read(0, 9));
    source.close();
    return { read: await reading, whole: await kindOf(source.whole), error: source.error.constructor.name };
  },
};

const outcome = await SCENES[scene]();
console.log(JSON.stringify({ ...outcome, asked: asked.map(([from, to]) => [from / BLOCK, to === SIZE ? "end" : to / BLOCK]) }));
