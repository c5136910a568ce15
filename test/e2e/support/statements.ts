/** A proxy before PostgreSQL that keeps what is asked: each named statement's text, and parameters that it was given. */
import { connect, createServer, type Socket } from "node:net";

export interface Asked {
  readonly name: string;
  readonly text: string;
  /** Of a few of its calls, as the wire had them. */
  readonly given: readonly (readonly (string | null)[])[];
}

export interface StatementRecorder {
  /** `url` with this proxy's address. */
  through(url: string): string;
  asked(): readonly Asked[];
  stop(): Promise<void>;
}

/** The first calls and the last ones of each statement. */
const FIRST = 2;
const LAST = 4;
const INT32 = 4;
const INT16 = 2;

export async function recordStatements(targetUrl: string): Promise<StatementRecorder> {
  const target = new URL(targetUrl);
  const sockets = new Set<Socket>();
  const texts = new Map<string, string>();
  const given = new Map<string, (string | null)[][]>();
  const keep = (name: string, values: (string | null)[]): void => {
    const calls = given.get(name) ?? [];
    given.set(name, calls);
    if (calls.length >= FIRST + LAST) calls.splice(FIRST, 1);
    calls.push(values);
  };
  const server = createServer((client) => {
    const upstream = connect(Number(target.port || 5432), target.hostname);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => socket.destroy());
      socket.on("close", () => sockets.delete(socket));
    }
    client.on("close", () => upstream.destroy());
    upstream.on("close", () => client.destroy());
    upstream.on("data", (bytes) => client.write(bytes));
    const read = readMessages((type, body) => {
      if (type === "P") {
        const [name, text] = [textAt(body, 0), textAt(body, textAt(body, 0).length + 1)];
        if (name !== "") texts.set(name, text);
      } else if (type === "B") {
        const bound = readBind(body);
        if (bound.name !== "") keep(bound.name, bound.values);
      }
    });
    client.on("data", (bytes) => {
      read(bytes);
      upstream.write(bytes);
    });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    through: (url) => {
      const own = new URL(url);
      own.hostname = "127.0.0.1";
      own.port = String(port);
      return own.href;
    },
    asked: () =>
      [...texts].map(([name, text]) => ({ name, text, given: given.get(name) ?? [] })).sort(byName),
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((done) => server.close(done));
    },
  };
}

const byName = (a: Asked, b: Asked): number => (a.name < b.name ? -1 : 1);

/** Messages of a frontend: a length and a body to begin with, and from then on a letter before each. */
function readMessages(onMessage: (type: string, body: Buffer) => void): (bytes: Buffer) => void {
  let left = Buffer.alloc(0);
  let started = false;
  return (bytes) => {
    left = Buffer.concat([left, bytes]);
    for (;;) {
      const head = started ? 1 : 0;
      if (left.length < head + INT32) return;
      const end = head + left.readInt32BE(head);
      if (left.length < end) return;
      if (started) onMessage(String.fromCharCode(left[0] ?? 0), left.subarray(head + INT32, end));
      started = true;
      left = left.subarray(end);
    }
  };
}

function textAt(body: Buffer, from: number): string {
  const end = body.indexOf(0, from);
  return body.toString("utf8", from, end);
}

function readBind(body: Buffer): { name: string; values: (string | null)[] } {
  const portalEnd = body.indexOf(0) + 1;
  const nameEnd = body.indexOf(0, portalEnd) + 1;
  const name = body.toString("utf8", portalEnd, nameEnd - 1);
  let at = nameEnd + INT16 + INT16 * body.readInt16BE(nameEnd);
  const count = body.readInt16BE(at);
  at += INT16;
  const values: (string | null)[] = [];
  for (let n = 0; n < count; n += 1) {
    const length = body.readInt32BE(at);
    at += INT32;
    values.push(length < 0 ? null : body.toString("utf8", at, at + length));
    at += Math.max(0, length);
  }
  return { name, values };
}
