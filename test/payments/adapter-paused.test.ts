/** A sender that is really stopped (SIGSTOP) just before the socket, and what it does when it goes on. */
import { type ChildProcess, spawn } from "node:child_process";
import { createServer, type Server, type ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { waitFor } from "../support/wait.js";

let posts: number;
let gate: ServerResponse[];
let api: Server;
let gateServer: Server;
let child: ChildProcess | undefined;

const listen = (server: Server): Promise<void> =>
  new Promise((done) => server.listen(0, "127.0.0.1", () => done()));
const urlOf = (server: Server): string => {
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return `http://127.0.0.1:${address.port}`;
};

beforeEach(async () => {
  posts = 0;
  gate = [];
  api = createServer((request, response) => {
    posts += 1;
    request.resume();
    response.end(
      JSON.stringify({
        id: "re_1",
        object: "refund",
        amount: 2000,
        currency: "gbp",
        status: "succeeded",
        payment_intent: "pi_1",
        created: 1,
      }),
    );
  });
  gateServer = createServer((_request, response) => gate.push(response));
  await Promise.all([listen(api), listen(gateServer)]);
});

afterEach(async () => {
  child?.kill("SIGKILL");
  for (const server of [api, gateServer]) {
    server.closeAllConnections();
    await new Promise<void>((done) => server.close(() => done()));
  }
});

interface Seen {
  verdict: string;
  code: string | null;
}

/** Starts the sender; resolves once it stands in the gate. */
async function senderInGate(timeoutMs: number): Promise<{ process: ChildProcess; outcome: Promise<Seen> }> {
  const started = spawn(
    process.execPath,
    [
      "--import",
      "tsx",
      fileURLToPath(new URL("./paused-sender.process.ts", import.meta.url)),
      urlOf(api),
      urlOf(gateServer),
      String(timeoutMs),
    ],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  child = started;
  let text = "";
  started.stdout.on("data", (chunk: Buffer) => {
    text += chunk.toString("utf8");
  });
  const outcome = new Promise<Seen>((resolve, reject) => {
    started.on("close", () =>
      text === "" ? reject(new Error("the sender said nothing")) : resolve(JSON.parse(text) as Seen),
    );
  });
  await waitFor(() => gate.length === 1, { what: "the sender to stand in the gate" });
  return { process: started, outcome };
}

test("stopped in the gate until after its deadline, the gate having said yes meanwhile: it sends nothing", async () => {
  const timeoutMs = 3_000;
  const { process: sender, outcome } = await senderInGate(timeoutMs);
  sender.kill("SIGSTOP");
  gate[0]?.end("yes");
  await delay(timeoutMs + 200); // The subject of this test is time that passes while a process stands still.
  sender.kill("SIGCONT");
  expect(await outcome).toMatchObject({ verdict: "not_executed", code: "timeout_before_send" });
  expect(posts).toBe(0);
});

test("stopped in the gate for a while: the old yes is not believed, the gate is asked again", async () => {
  const { process: sender, outcome } = await senderInGate(60_000);
  sender.kill("SIGSTOP");
  gate[0]?.end("yes");
  await delay(2_300);
  sender.kill("SIGCONT");
  await waitFor(() => gate.length === 2, { what: "the gate to be asked again" });
  expect(posts).toBe(0);
  gateServer.on("request", (_request, response) => response.end("yes"));
  gate[1]?.end("yes");
  expect(await outcome).toMatchObject({ verdict: "committed" });
  expect(posts).toBe(1);
});
