/** The commands of docs/sandbox.md for a payment provider of one's own, as they stand there: they end in one refund at that provider. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, expect, test } from "vitest";
import { freePort } from "../../src/app/demo/ports.js";
import { SECRET_KEY, WEBHOOK_SECRET, withPaymentsSandbox } from "../payments/support.js";
import { waitFor } from "../support/wait.js";

const LONG_MS = 240_000;
const payments = withPaymentsSandbox();
const home = mkdtempSync(path.join(tmpdir(), "countersign-own-"));
const children: ChildProcess[] = [];

/** What was started last ends first: the program before its database. Each leads a group of its own. */
afterAll(async () => {
  for (const child of children.reverse()) {
    if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) continue;
    const ended = new Promise((resolve) => child.once("close", resolve));
    process.kill(-child.pid, "SIGTERM");
    await ended;
  }
  rmSync(home, { recursive: true, force: true });
});

const section = (): string => {
  const doc = readFileSync("docs/sandbox.md", "utf8");
  const begin = doc.indexOf("## With a payment provider of your own");
  return doc.slice(begin, doc.indexOf("\n## ", begin + 1));
};
const blocks = (language: string): string[] =>
  [...section().matchAll(new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\`\`\``, "gu"))].map(
    ([, text = ""]) => text,
  );

/** A shell as its reader's; what it says so far. */
function shell(script: string, env: Record<string, string>): { said: () => string; child: ChildProcess } {
  const child = spawn("bash", ["-ec", script], {
    env: { PATH: process.env["PATH"] ?? "", HOME: process.env["HOME"] ?? "", ...env },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  children.push(child);
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => {
      said += chunk.toString();
    });
  return { said: () => said, child };
}

test("lead from a fresh checkout to a refund at that provider, once", { timeout: LONG_MS }, async () => {
  const [first = "", second = ""] = blocks("sh");
  const [slackPort, port] = [await freePort(), await freePort()];
  const sandboxes = shell(first.replace("npm run sandboxes", `npm run sandboxes -- ${home}`), {
    DEMO_PORT: String(slackPort),
  });
  const exported = await waitFor(() => /^export DATABASE_URL=.*$/mu.exec(sandboxes.said())?.[0], {
    timeoutMs: 90_000,
    what: "the line to paste",
  });

  const now = Date.now();
  const day = (ago: number): string => new Date(now - ago * 86_400_000).toISOString().slice(0, 10);
  const [shop = ""] = blocks("json");
  writeFileSync(
    path.join(home, "shop.json"),
    shop.replace("2026-11-01", day(20)).replace("2026-11-10", day(10)),
  );
  await payments.sandbox.control.seedPayment({ paymentIntent: "pi_1", amount: 18_000, currency: "GBP" });
  const mine = second
    .replace("http://127.0.0.1:9090", payments.sandbox.url)
    .replace("sk_test_mine", SECRET_KEY)
    .replace("whsec_mine", WEBHOOK_SECRET)
    .replace("shop.json", path.join(home, "shop.json"));
  const product = shell(`${exported}\n${mine}`, { PORT: String(port) });
  const ready = async (): Promise<boolean> =>
    fetch(`http://127.0.0.1:${port}/readyz`).then(
      ({ status }) => status === 200,
      () => false,
    );
  await waitFor(
    async () => {
      if (product.child.exitCode !== null) throw new Error(`it ended:\n${product.said()}`);
      return ready();
    },
    { timeoutMs: 120_000, what: "the program to be ready" },
  );

  const act = async (what: string, body: object): Promise<Record<string, unknown>> => {
    const answer = await fetch(`http://127.0.0.1:${slackPort}/sandbox/act/${what}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return (await answer.json()) as Record<string, unknown>;
  };
  const asks = /`(Order ORD-1 [^`]+)`/u.exec(section())?.[1] ?? "";
  const { ts } = await act("post", { as: "U_AGENT", channel: "C_TICK", text: asks });
  const confirm = async (): Promise<boolean> => {
    const answer = await fetch(
      `http://127.0.0.1:${slackPort}/sandbox/messages?as=U_AGENT&channel=C_TICK&threadTs=${String(ts)}`,
    );
    const { messages } = (await answer.json()) as { messages: { ts: string; blocks?: unknown }[] };
    const asked = messages.find(({ blocks: shown }) => JSON.stringify(shown ?? "").includes('"Confirm"'));
    if (asked === undefined) return false;
    const at = { channel: "C_TICK", ts: asked.ts };
    return (await act("click", { as: "U_AGENT", at, label: "Confirm" }))["ok"] === true;
  };
  await waitFor(confirm, { timeoutMs: 60_000, what: "the thread to ask for the customer" });
  await waitFor(async () => (await payments.sandbox.control.counts()).committed === 1, {
    timeoutMs: 60_000,
    what: "the refund at the provider",
  });
  expect(await payments.sandbox.control.effects()).toMatchObject([{ paymentIntent: "pi_1", amount: 2_000 }]);
});
