/** The command line as its users type it: a process each, judged by stdout, exit code, and the provider's own count. */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePort } from "../../src/app/demo/ports.js";
import { startProduct } from "../../src/app/demo/product.js";
import { startWorld, type World } from "../../src/app/demo/world.js";
import { hostEnvironment } from "../../src/config/host.js";
import { openDb } from "../../src/db/connect.js";
import { counted } from "../../src/domain/text/counted.js";
import { sealBlocks } from "../../src/ledger/index.js";
import { demoShop } from "../../src/shop/index.js";
import { waitFor } from "../support/wait.js";
import { withDatabases } from "./support/databases.js";

const databases = withDatabases();
const home = mkdtempSync(path.join(tmpdir(), "countersign-cli-"));
let world: World;

beforeAll(async () => {
  world = await startWorld({
    dataDir: home,
    slackPort: 0,
    paymentsPort: 0,
    postgresPort: 0,
    productPort: 0,
    transport: "http",
    policyFile: path.resolve("policies/default.yaml"),
    shop: demoShop({ today: new Date() }),
    extraEnv: { PLANNER: "scripted", LOG_LEVEL: "warn" },
    keepWorkspace: false,
    databaseServerUrl: databases.serverUrl,
    databaseName: await databases.fresh(),
    operations: () => Promise.resolve([]),
  });
  expect(await cs("seed")).toMatchObject({ code: 0 });
});

afterAll(async () => {
  await world?.stop();
  rmSync(home, { recursive: true, force: true });
});

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function cs(...args: string[]): Promise<Ended> {
  return run(args, world.env);
}

function run(args: readonly string[], env: Record<string, string>): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ["bin/countersign.js", ...args], {
      env: { PATH: process.env["PATH"] ?? "", ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let stdout = "";
    let stderr = "";
    child.stdout.on("data", (chunk: Buffer) => {
      stdout += chunk.toString();
    });
    child.stderr.on("data", (chunk: Buffer) => {
      stderr += chunk.toString();
    });
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, stdout, stderr }));
  });
}

/** The one JSON document on stdout. */
async function json<T>(...args: string[]): Promise<T> {
  const ended = await cs(...args, "--json");
  expect(ended, ended.stderr).toMatchObject({ code: 0 });
  return JSON.parse(ended.stdout) as T;
}

const runIdIn = (text: string): string => /run_[0-9a-f]+/.exec(text)?.[0] ?? "no run";
const refunds = async (): Promise<number> => (await world.payments.control.counts()).committed;

async function traceOf(
  runId: string,
): Promise<{ steps: { calls: { tool: string; replayed: boolean }[] }[] }> {
  const file = path.join(home, `${runId}.json`);
  expect(await cs("trace", runId, "--out", file)).toMatchObject({ code: 0 });
  return JSON.parse(readFileSync(file, "utf8"));
}

describe("ops health", () => {
  test("says what `/ops health` says, and of what it cannot see from here that it did not look", async () => {
    const well = await cs("ops", "health");
    expect(well, well.stderr).toMatchObject({ code: 0 });
    for (const line of [
      /^What was looked at is healthy\.$/mu,
      /^ok {6}database: The database answers\.$/mu,
      /^ok {6}worker: What is due is taken\.$/mu,
      /^ok {6}payments: The payment provider answers\.$/mu,
      /^ok {6}books: The provider's list of everything can be read\.$/mu,
      /^\? {7}queue, slack: Not looked at: /mu,
      /^Open: nothing open\.$/mu,
      /^Approvals that wait: 0\.$/mu,
      /^Nothing is unknown\.$/mu,
      /^Open incidents: 0\.$/mu,
      /^Nothing is frozen\.$/mu,
    ])
      expect(well.stdout).toMatch(line);
    expect(await json("ops", "health")).toMatchObject({
      parts: expect.arrayContaining([{ name: "books", ok: true, sentence: expect.any(String) }]),
      openIncidents: 0,
      oldestUnknown: null,
    });
  });

  test("a part that is not well is named and fails it; without a provider's key that is said", async () => {
    const down = world.payments.control.arm({ kind: "read_down" });
    const bad = await cs("ops", "health");
    world.payments.control.disarm(down);
    expect(bad).toMatchObject({ code: 1, stderr: expect.stringContaining("Not well: payments, books.") });
    expect(bad.stdout).toMatch(/^Not all parts work\.$/mu);
    expect(bad.stdout).toMatch(/^not ok {2}books: The provider's list of everything cannot be read: /mu);
    const { STRIPE_SECRET_KEY: _key, ...env } = world.env;
    const blind = await run(["ops", "health"], env);
    expect(blind).toMatchObject({ code: 0, stdout: expect.stringContaining("needs STRIPE_SECRET_KEY") });
  });
});

describe("a ticket from the shell", () => {
  test("acts once; a second run on the same database replays the stored result and sends nothing", async () => {
    const before = await refunds();
    const first = await cs("run", "TCK-2002");
    expect(first, first.stderr).toMatchObject({ code: 0 });
    expect(first.stdout).toContain("resolved");
    expect(await refunds()).toBe(before + 1);

    const second = await cs("run", "TCK-2002");
    expect(second, second.stderr).toMatchObject({ code: 0 });
    expect(await refunds()).toBe(before + 1);
    const runs = [runIdIn(first.stdout), runIdIn(second.stdout)];
    expect(new Set(runs).size).toBe(2);

    const replayed = await Promise.all(
      runs.map(async (id) =>
        (await traceOf(id)).steps
          .flatMap((step) => step.calls)
          .filter((call) => call.tool === "issue_refund")
          .map((call) => call.replayed),
      ),
    );
    expect(replayed).toEqual([[false], [true]]);
    expect(await cs("trace", runs[0] ?? "", "--out", "/nodir/x.json")).toEqual({
      code: 2,
      stdout: "",
      stderr: "/nodir/x.json cannot be written: there is no such file or folder.\n",
    });
    for (const id of runs) {
      expect(await json("runs", "show", id)).toMatchObject({ id, state: "resolved", verified_success: true });
    }
  });

  test("above the limit it waits for an approval, and nothing is sent", async () => {
    const before = await refunds();
    const held = await cs("run", "TCK-2001");
    expect(held, held.stderr).toMatchObject({ code: 0 });
    expect(held.stdout).toContain("awaiting_approval");
    expect(await refunds()).toBe(before);
    const { approvals } = await json<{ approvals: object[] }>("approvals", "list");
    expect(approvals).toMatchObject([{ id: expect.stringMatching(/^apr_/) }]);
    expect((await cs("approvals")).stdout).toMatch(/^apr_\S+ +op_\S+ +refund £[\d.]+ GBP on ORD-\d+ /mu);
    const { operations } = await json<{ operations: object[]; next: unknown }>(
      "ops",
      "list",
      "--status",
      "AWAITING_APPROVAL",
    );
    expect(operations).toMatchObject([
      { kind: "refund", order: "ORD-10042", amount: 18000, currency: "GBP", status: "AWAITING_APPROVAL" },
    ]);
  });

  test("what cannot be done is handed to a person", async () => {
    const ended = await cs("run", "TCK-2004");
    expect(ended, ended.stderr).toMatchObject({ code: 0 });
    expect(ended.stdout).toContain("escalated");
    expect((await json<{ status: string }>("shop", "show", "A-4472")).status).toBe("dispatched");
  });

  test("that does not exist is named, with what there is", async () => {
    expect(await cs("run", "TCK-9999")).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringContaining("There is no ticket TCK-9999."),
    });
  });
});

describe("what it shows", () => {
  test("of an operation: the promised fields, in minor units", async () => {
    const { operations } = await json<{ operations: { id: string }[] }>(
      "ops",
      "list",
      "--status",
      "CONFIRMED",
    );
    const id = operations[0]?.id ?? "none";
    const shown = await json<Record<string, unknown>>("ops", "show", id);
    expect(Object.keys(shown)).toEqual(
      expect.arrayContaining(
        `id key kind status customer order subscription amount currency fingerprint idempotencyKey attempts
         approvalId approvedBy runId ticketId providerRef createdAt updatedAt`.split(/\s+/),
      ),
    );
    expect(shown).toMatchObject({ order: "ORD-1001", amount: 2000, currency: "USD", status: "CONFIRMED" });
    const { events } = await json<{ events: Record<string, unknown>[] }>("ops", "events", id);
    expect(events.at(-1)).toMatchObject({ to: "CONFIRMED", seq: events.length });
    for (const event of events) {
      expect(Object.keys(event)).toEqual(
        expect.arrayContaining("seq at type from to actor attempt evidence".split(" ")),
      );
    }
  });

  test("of an operation in words: as much as in Slack, money with its currency, times with their zone", async () => {
    const { operations } = await json<{ operations: { id: string }[] }>("ops", "list", "confirmed");
    const { code, stdout } = await cs("ops", "show", operations[0]?.id ?? "none");
    expect(code).toBe(0);
    expect(stdout).toMatch(/^op_\w+ {2}CONFIRMED {2}refund \$20\.00 USD on ORD-1001\n/);
    for (const part of ["look it up by", "What was sent\n  attempt 1, ", "Evidence so far", "It has ended."])
      expect(stdout).toContain(part);
    expect(stdout).toMatch(/created +\d{1,2} \w+ \d{4}, \d\d:\d\d:\d\d UTC/);
    // Minor units stand in the key alone.
    expect(stdout.match(/\b2000\b/g)).toHaveLength(1);
  });

  test("of a list that holds nothing, or is asked for in few words: a sentence or the list, never a riddle", async () => {
    const said = async (...args: string[]) => {
      const { code, stdout } = await cs(...args);
      return { code, stdout: stdout.trim() };
    };
    expect(await said("ops", "list", "DISPATCHED")).toEqual({
      code: 0,
      stdout: "No operation is DISPATCHED.",
    });
    expect(await said("ops", "list", "unknown")).toEqual({
      code: 0,
      stdout: "No operation is OUTCOME_UNKNOWN.",
    });
    expect(await cs("ops", "list", "DISPATCHED", "--status", "VOIDED")).toMatchObject({ code: 2 });
    expect(await said("ops", "incidents")).toEqual({ code: 0, stdout: "No incident is open." });
    expect(await said("runs")).toEqual(await said("runs", "list"));
    expect(await said("approvals")).toEqual(await said("approvals", "list"));
    expect((await said("runs")).stdout).toContain("run_");
  });

  test("every command that the runbook and the README name and that only looks works as it stands there", async () => {
    const first = async (what: string, ...args: string[]) =>
      (await json<Record<string, { id: string }[]>>(...args))[what]?.[0]?.id ?? "none";
    const known: Record<string, string> = {
      ID: await first("operations", "ops", "list", "CONFIRMED"),
      RUN: await first("runs", "runs", "list"),
      FILE: path.join(home, "named.json"),
    };
    const named = ["docs/runbook.md", "README.md"]
      .flatMap((file) => [...readFileSync(file, "utf8").matchAll(/`(?:npx )?countersign\s+([^`]+)`/gu)])
      .map(([, words = ""]) => words.trim().replace(/\s+/gu, " "));
    const looks = [...new Set(named)].filter((words) =>
      /^(?:ops|audit|trace|approvals|runs|--help)\b/u.test(words),
    );
    expect(looks.length).toBeGreaterThan(9);
    for (const words of looks) {
      const ended = await cs(...words.split(" ").map((word) => known[word] ?? word));
      // No worker runs here, which health says with its exit code once something has been due for a minute.
      const idle = words === "ops health" && ended.stderr.includes("Not well: worker.");
      expect(ended, `${words}: ${ended.stderr}`).toMatchObject({ code: idle ? 1 : 0 });
      expect(ended.stdout.trim(), words).not.toBe("");
    }
  });

  test("of an order: the balance of its payment", async () => {
    expect(await json("shop", "show", "ORD-1001")).toMatchObject({
      ref: "ORD-1001",
      status: "delivered",
      currency: "USD",
      payment: { captured: 7900, reserved: 0, refunded: 2000, refundedElsewhere: 0 },
    });
  });

  test("of the policy: the decision and each rule that spoke", async () => {
    const explain = (amount: string) =>
      json<{ decision: unknown }>(
        "policy",
        "explain",
        "--kind",
        "refund",
        "--order",
        "ORD-1002",
        "--amount",
        amount,
      );
    expect(JSON.stringify(await explain("2000"))).toContain('"allow"');
    expect(JSON.stringify(await explain("33000"))).toContain('"hold"');
    expect(await cs("policy", "check", "policies/strict.yaml")).toMatchObject({ code: 0 });
  });

  test("of the audit: every event, and that the chain holds", async () => {
    const exported = await cs("audit", "export");
    expect(exported.code).toBe(0);
    const lines = exported.stdout.trim().split("\n");
    // At least: proposed, claimed and confirmed of the refund, and the one that waits.
    expect(lines.length).toBeGreaterThanOrEqual(4);
    for (const line of lines) expect(() => JSON.parse(line)).not.toThrow();

    const of = (kind: RegExp) => lines.filter((line) => kind.test(line)).length;
    const blocks = of(/^\{"block":/);
    const all = lines.length - blocks;
    const rest = of(/"subject":/);
    expect(rest).toBeGreaterThan(0);
    const verified = await cs("audit", "verify");
    expect(verified).toMatchObject({ code: 0 });
    const { operations } = await json<{ operations: object[] }>("ops", "list");
    const read = `Intact: ${all} events, ${all - rest} of ${operations.length} operations and ${rest} of freezes, incidents and the policy.`;
    const decisions = `${counted(of(/"type":"prepare"/), "decision")} with a seal of ours.`;
    expect(blocks).toBe(0);
    expect(verified.stdout).toBe(`${read} 0 blocks seal 0 events; ${all} not sealed yet. ${decisions}\n`);

    const { operations: done } = await json<{ operations: { id: string; providerRef: string }[] }>(
      "ops",
      "list",
      "--status",
      "CONFIRMED",
    );
    const [{ id, providerRef } = { id: "none", providerRef: "none" }] = done;
    const explain = () =>
      json<{
        ticket: { textHash: string; textHashNow: string };
        operation: { providerRef: string; idempotencyKey: string };
        events: { type: string }[];
        chain: { intact: boolean; events: number; blocks: object[]; unsealed: number };
      }>("audit", "explain", id);
    const before = await explain();
    expect(before.ticket.textHash).toBe(before.ticket.textHashNow);
    expect(before.operation.providerRef).toMatch(/^re_/);
    expect(before.chain).toMatchObject({ intact: true, events: before.events.length, blocks: [] });
    expect(before.chain.unsealed).toBe(before.events.length);

    const db = openDb({ url: world.databaseUrl, applicationName: "countersign-test", poolSize: 1 });
    expect(await sealBlocks(db, { patienceMs: 30_000 }).finally(() => db.close())).toBe(all);
    expect((await cs("audit", "verify")).stdout).toBe(
      `${read} 1 block seals ${all} events; 0 not sealed yet. ${decisions}\n`,
    );
    // Without the secret that decides over seals it says that it looked at none.
    const { SLACK_BOT_TOKEN: _token, ...without } = world.env;
    expect(await run(["audit", "verify"], without)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(
        "0 not sealed yet. Seals of decisions were not checked: set SEAL_SECRET",
      ),
    });
    const other = { ...without, SEAL_SECRET: "of somebody else ".replaceAll(" ", "-").repeat(2) };
    expect(await run(["audit", "verify"], other)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("it bears no seal of the policy's answer"),
    });
    const told = (await cs("audit", "explain", id)).stdout;
    for (const part of [
      "the stored text has it",
      `Provider's reference: ${providerRef}`,
      "Asked for: $20.00 USD on ORD-1001; the policy allows it",
      "Attempt 1 began: it is sent.",
      `The provider answered: ${providerRef} of $20.00 USD (succeeded).`,
      "Sealed in block 1, ",
    ]) {
      expect(told).toContain(part);
    }
    expect(told).toMatch(
      /^Ticket tkt_\w+, filed \d{1,2} \w+ \d{4}, [\d:]+ UTC \(\w+\) by .*; the customer was confirmed by \w+/m,
    );
    expect(told).toMatch(/policy [0-9a-f]{64}, known since \d{1,2} \w+ \d{4}, [\d:]+ UTC$/m);
  });
});

describe("a signal to npm", () => {
  test("ends the product that npm started, and nothing keeps running", async () => {
    const { scripts } = JSON.parse(readFileSync("package.json", "utf8")) as {
      scripts: Record<string, string>;
    };
    for (const script of Object.values(scripts).filter((text) => text.includes("bin/countersign.js"))) {
      expect(script).toMatch(/^exec node /);
    }
    // A process group of its own: what a failing test would leave behind can be ended too.
    const npm = spawn("npm", ["run", "--silent", "cs", "--", "start"], {
      env: { ...hostEnvironment(), ...world.env, PORT: String(world.productPort), LOG_LEVEL: "info" },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    for (const pipe of [npm.stdout, npm.stderr]) pipe.resume();
    // "close" comes when nobody holds the pipes any more, so not before the program itself is gone.
    let gone = false;
    let code: number | null = null;
    npm.once("close", (ended) => {
      gone = true;
      code = ended;
    });
    const ready = () =>
      fetch(`http://127.0.0.1:${world.productPort}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      );
    try {
      await waitFor(ready, { timeoutMs: 90_000, everyMs: 100, what: "the product to be ready" });
      // As a terminal does it: to everybody in the group; npm then passes it on, so that the product hears it twice.
      if (npm.pid !== undefined) process.kill(-npm.pid, "SIGINT");
      await waitFor(() => gone, { timeoutMs: 40_000, what: "everything that npm started to end" });
      // It stopped in its own time; a second signal's death would be 130.
      expect(code).toBe(0);
      expect(await ready()).toBe(false);
    } finally {
      if (npm.pid !== undefined && !gone) process.kill(-npm.pid, "SIGKILL");
    }
  });
});

describe("a demo that is killed", () => {
  const alive = (pid: number): boolean => {
    try {
      return process.kill(pid, 0);
    } catch {
      return false;
    }
  };

  test("while its product starts leaves no product behind", async () => {
    const demo = spawn(
      process.execPath,
      [
        "--import",
        "tsx",
        "--input-type=module",
        "-e",
        `const { launchProduct } = await import("./src/app/demo/product.ts");
         console.log(launchProduct({ env: process.env, port: ${await freePort()}, logFile: "/dev/null" }).pid);`,
      ],
      { env: { ...hostEnvironment(), ...world.env }, stdio: ["ignore", "pipe", "inherit"] },
    );
    const pid = await new Promise<number>((resolve) =>
      demo.stdout.once("data", (text) => resolve(Number(text))),
    );
    try {
      expect(alive(pid)).toBe(true);
      demo.kill("SIGKILL");
      await waitFor(() => !alive(pid), { timeoutMs: 40_000, what: "the product to end with its demo" });
    } finally {
      if (alive(pid)) process.kill(pid, "SIGKILL");
    }
  });
});

describe("bad usage", () => {
  const cases: [what: string, args: string[], code: number, said: RegExp][] = [
    ["an unknown command", ["pay"], 2, /unknown command 'pay'/],
    ["a missing argument", ["ops", "show"], 2, /missing required argument 'id'/],
    ["an id that is none", ["ops", "show", "banana", "--json"], 2, /"banana" is no id of an operation/],
    [
      "an id of something else",
      ["ops", "events", "run_00", "--json"],
      2,
      /"run_00" is no id of an operation/,
    ],
    ["a run's id that is none", ["runs", "show", "op_00"], 2, /"op_00" is no id of a run/],
    [
      "a run that is not there",
      ["runs", "show", "run_00000000000000000000000000000000"],
      1,
      /no run run_0000/,
    ],
    ["a page of incidents that is none", ["ops", "incidents", "--cursor", "banana"], 2, /banana/],
    ["a page that is none", ["ops", "list", "--cursor", "banana"], 2, /banana/],
    ["an operation that is not there", ["ops", "show", "op_00000000000000000000000000000000"], 1, /op_0000/],
    ["a state that is none", ["ops", "list", "--status", "DONE"], 2, /DONE/],
    [
      "an amount with a point",
      ["policy", "explain", "--kind", "refund", "--order", "ORD-1002", "--amount", "1.5"],
      2,
      /minor units/,
    ],
    ["a role that is none", ["start", "--roles", "boss"], 2, /boss/],
    ["a story that is none", ["demo", "--story", "heist"], 2, /heist/],
  ];
  test("an incident about a payment names its order and the payment", async () => {
    const db = openDb({ url: world.databaseUrl, applicationName: "countersign-test", poolSize: 1 });
    try {
      await db.sql(
        undefined,
        `INSERT INTO incidents (id, kind, dedupe_key, payment_id, detail)
         SELECT 'inc_' || repeat('0', 32), 'refunded_elsewhere', 'test', p.id, '{}'::jsonb
         FROM payments p JOIN orders o ON o.id = p.order_id WHERE o.ref = 'ORD-1002' LIMIT 1`,
      );
      const { stdout } = await cs("ops", "incidents");
      expect(stdout).toMatch(/^inc_0{32} +refunded_elsewhere +ORD-1002 +pi_\S+ +\d/mu);
    } finally {
      await db.sql(undefined, "DELETE FROM incidents WHERE dedupe_key = 'test'");
      await db.close();
    }
  });

  test("an amount with a sign: what it is written like, in one sentence and nothing else", async () => {
    const words = ["policy", "explain", "--kind", "refund", "--order", "ORD-1002", "--amount", "£18"];
    expect(await cs(...words)).toMatchObject({
      code: 2,
      stdout: "",
      stderr: "--amount is whole minor units, like 1800 for £18.00.\n",
    });
  });

  test.each(cases)("%s: one sentence, its exit code, nothing on stdout", async (_what, args, code, said) => {
    const ended = await cs(...args);
    expect(ended.stderr).toMatch(said);
    expect(ended).toMatchObject({ code, stdout: "" });
    expect(ended.stderr).not.toMatch(/\n\s+at .*\(/);
  });

  test("every bad variable is named at once", async () => {
    const ended = await run(["start"], {
      DATABASE_URL: "mysql://here",
      PORT: "ninety",
      LEASE_MS: "-1",
      SLACK_BOT_TOKEN: "bad",
    });
    expect(ended).toMatchObject({ code: 2, stdout: "" });
    for (const name of [
      "DATABASE_URL",
      "PORT",
      "LEASE_MS",
      "SLACK_BOT_TOKEN",
      "SLACK_SIGNING_SECRET",
      "STRIPE_SECRET_KEY",
    ]) {
      expect(ended.stderr).toContain(name);
    }
  });

  test("a database that is not there is named as what it is, without a trace", async () => {
    const url = new URL(world.env["DATABASE_URL"] ?? "");
    url.pathname = "/nowhere_at_all";
    const ended = await run(["ops", "list"], { ...world.env, DATABASE_URL: url.href });
    expect(ended).toMatchObject({ code: 2, stdout: "" });
    expect(ended.stderr).toMatch(/^DATABASE_URL does not lead to a database: .*nowhere_at_all/);
  });

  test.each([["ops", "list"], ["migrate"], ["audit", "verify"], ["run", "TCK-2002"]])(
    "a database that does not answer is one sentence: %s %s",
    async (...args) => {
      const port = await freePort();
      for (const host of ["127.0.0.1", "localhost"]) {
        const DATABASE_URL = `postgresql://someone:secret@${host}:${port}/countersign`;
        expect(await run(args, { ...world.env, DATABASE_URL })).toEqual({
          code: 2,
          stdout: "",
          stderr: `DATABASE_URL does not answer (${host}:${port}): is the database, or the demo, running?\n`,
        });
      }
    },
  );

  test("a shop file with a mistake changes nothing, and the path in the file is named", async () => {
    const file = path.join(home, "shop.json");
    const order = {
      ref: "ORD-NEW",
      customer: "CUS-1",
      status: "lost",
      currency: "GBP",
      placedAt: "2026-11-02T09:00:00Z",
    };
    writeFileSync(
      file,
      JSON.stringify({ customers: [], orders: [order], subscriptions: [], helpArticles: [] }),
    );
    const ended = await cs("shop", "import", file);
    expect(ended).toMatchObject({ code: 1, stdout: "" });
    expect(ended.stderr).toMatch(/orders\[0\]\.status|orders\.0\.status/);
    expect(await cs("shop", "show", "ORD-NEW")).toMatchObject({ code: 1 });
  });
});

describe("an outcome that is not known", () => {
  test("show asks the provider, and says why where it cannot; the order leads to the operation; nothing is written by looking", async () => {
    const { control } = world.payments;
    control.arm({ kind: "commit_then_drop", onReplay: true, times: null });
    const down = control.arm({ kind: "read_down", how: "drop" });
    const before = await refunds();
    const child = spawn(process.execPath, ["bin/countersign.js", "run", "TCK-2013"], {
      // Nobody looks again while this lasts.
      env: { PATH: process.env["PATH"] ?? "", ...world.env, RECONCILE_BASE_MS: "600000" },
      stdio: "ignore",
    });
    const ended = new Promise((resolve) => child.on("close", resolve));
    const id = await waitFor(
      async () =>
        (await json<{ operations: { id: string }[] }>("ops", "list", "unknown")).operations.at(0)?.id,
      { timeoutMs: 60_000, what: "the outcome to be unknown" },
    );
    child.kill("SIGKILL");
    await ended;
    expect(await refunds()).toBe(before + 1);
    const show = async (env: Record<string, string> = world.env): Promise<string> => {
      const { code, stdout, stderr } = await run(["ops", "show", id], env);
      expect(code, stderr).toBe(0);
      return stdout;
    };
    const { events } = await json<{ events: object[] }>("ops", "events", id);

    expect(await show()).toMatch(
      /last asked: The provider could not be asked: it could not be reached: .* \(ECONNRESET\)\./u,
    );
    control.disarm(down);
    expect(await show()).toMatch(
      /last asked: The provider shows it: re_\w+ of £\d+\.00 GBP \(succeeded\)\./u,
    );
    const hangs = control.arm({ kind: "read_down", how: "hang" });
    expect(await show()).toMatch(/did not answer (?:in time|within 2\.5 s)\./u);
    control.disarm(hangs);
    const { STRIPE_SECRET_KEY: _, ...without } = world.env;
    expect(await show(without)).toContain(
      "The provider was not asked: here that needs STRIPE_SECRET_KEY, STRIPE_WEBHOOK_SECRET and STRIPE_API_URL as the program has them. What stands here is from before.",
    );
    expect((await json<{ events: object[] }>("ops", "events", id)).events).toEqual(events);

    // The only one of its order is the one that is meant; of several, all are named.
    expect(await cs("ops", "show", "ord-10050")).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(new RegExp(`^${id} {2}\\w+ {2}refund £`, "u")),
    });
    control.disarmAll();
    expect(await refunds()).toBe(before + 1);
  });
});

test("ops health beside a running process says what that says of its queue and of Slack", async () => {
  const { productPort: port, env } = world;
  const product = await startProduct({ env: { ...hostEnvironment(), ...env }, port });
  try {
    const look = () => run(["ops", "health"], { ...env, PORT: String(port) });
    let beside = await look();
    // What has been due since the worlds before this process is taken first.
    await waitFor(async () => {
      if (/^ok {6}worker: /mu.test(beside.stdout)) return true;
      beside = await look();
      return false;
    });
    expect(beside.stdout).toMatch(/^ok {6}queue: The queue \(\w+\) answers\.$/mu);
    expect(beside.stdout).toMatch(/^ok {6}slack: /mu);
    expect(beside.stdout).not.toContain("Not looked at");
    expect(beside.code, beside.stderr).toBe(0);
  } finally {
    await product.stop();
  }
});
