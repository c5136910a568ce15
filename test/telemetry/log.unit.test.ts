import { describe, expect, it } from "vitest";
import { Secret } from "../../src/config/index.js";
import { CountersignError } from "../../src/domain/errors.js";
import { createLogger, type RootLogger, withCorrelation } from "../../src/telemetry/index.js";

const capture = (
  secrets: readonly string[] = [],
): { log: RootLogger; lines: () => Record<string, unknown>[]; raw: () => string } => {
  const written: string[] = [];
  const log = createLogger({
    level: "debug",
    secrets: secrets.map((value) => new Secret(value)),
    stream: { write: (line) => void written.push(line) },
  });
  return {
    log,
    raw: () => written.join(""),
    lines: () => written.map((line) => JSON.parse(line) as Record<string, unknown>),
  };
};

describe("a line", () => {
  it("is one JSON document with level, ISO time, fields and message", () => {
    const { log, lines } = capture();
    log.warn({ operationId: "op_1", amountMinor: 18_000n, at: new Date(0) }, "claimed");
    expect(lines()).toEqual([
      expect.objectContaining({
        level: "warn",
        msg: "claimed",
        operationId: "op_1",
        amountMinor: "18000",
        at: "1970-01-01T00:00:00.000Z",
        time: expect.stringMatching(/^\d{4}-.*Z$/),
      }),
    ]);
  });

  it("carries the ids of the work around it, nested ones added, across awaits", async () => {
    const { log, lines } = capture();
    await withCorrelation({ runId: "run_1", job: "run" }, async () => {
      await Promise.resolve();
      await withCorrelation({ operationId: "op_1", attempt: 2 }, async () => {
        await Promise.resolve();
        log.info({}, "inside");
      });
      log.info({}, "outside");
    });
    log.info({}, "alone");
    const [inside, outside, alone] = lines();
    expect(inside).toMatchObject({ runId: "run_1", job: "run", operationId: "op_1", attempt: 2 });
    expect(outside).not.toHaveProperty("operationId");
    expect(alone).not.toHaveProperty("runId");
  });

  it("an error keeps its class, code, retry advice, ids and cause", () => {
    const { log, lines } = capture();
    const error = new CountersignError("lease_lost", "the lease is gone", {
      retry: "after-probe",
      ids: { operationId: "op_1" },
      cause: new Error("socket closed"),
    });
    log.error({ err: error }, "settle failed");
    expect(lines()[0]?.["err"]).toMatchObject({
      type: "CountersignError",
      code: "lease_lost",
      retry: "after-probe",
      ids: { operationId: "op_1" },
      cause: { message: "socket closed" },
    });
  });

  it("a circular, huge or strange value never throws and stays bounded", () => {
    const { log, raw, lines } = capture();
    const circular: Record<string, unknown> = {
      big: "x".repeat(100_000),
      list: Array.from({ length: 5_000 }, () => 1n),
    };
    circular["self"] = circular;
    log.info(
      {
        circular,
        when: new Date(Number.NaN),
        fn: () => 1,
        bytes: new Uint8Array(9),
        map: new Map([["a", 1]]),
      },
      "odd",
    );
    expect(raw().length).toBeLessThan(20_000);
    expect(lines()[0]).toMatchObject({ when: "[invalid date]", bytes: "[9 bytes]", map: { a: 1 } });
  });
});

describe("planted secrets and personal data", () => {
  const PLANTED: readonly (readonly [string, string])[] = [
    ["bot token", ["xoxb", "123456789012", "planted"].join("-")],
    ["app token", ["xapp", "1", "A0", "planted"].join("-")],
    ["payments key", ["sk", "live", "plantedplanted"].join("_")],
    ["restricted key", ["rk", "test", "plantedplanted"].join("_")],
    ["webhook secret", ["whsec", "plantedplanted"].join("_")],
    ["model key", ["sk", "ant", "api03", "planted"].join("-")],
    ["bearer", "Bearer planted.abc.def"],
    ["e-mail", "tom.whitfield+planted@shop.example"],
    ["password in a URL", "postgresql://app:planted-pw@db:5432/x"],
    ["response url", "https://hooks.slack.com/commands/T0/planted/xyz"],
    ["card", "4242 4242 4242 4242"],
  ];

  it.each(PLANTED)("%s is kept out of fields, messages, errors, causes and child loggers", (_what, value) => {
    const { log, raw } = capture();
    const error = new Error(`request failed: ${value}`, { cause: { detail: [value] } });
    log.info({ detail: value, deep: { list: [{ inner: `before ${value} after` }] } }, `saw ${value}`);
    log.error({ err: error }, "failed");
    log.child({ detail: value }).warn({}, "child");
    expect(raw()).not.toContain("planted");
    expect(raw()).not.toContain("4242 4242");
    expect(
      raw()
        .split("\n")
        .filter(Boolean)
        .map((line) => JSON.parse(line) as unknown),
    ).toHaveLength(3);
  });

  it.each([
    "email",
    "customerName",
    "customer_name",
    "text",
    "note",
    "displayName",
    "Authorization",
    "signing_secret",
    "blocks",
  ])("the field %s is blanked whatever it holds and however deep", (name) => {
    const { log, raw } = capture();
    log.info({ [name]: "planted", deep: [{ [name]: { inner: "planted" } }] }, "x");
    log.child({ [name]: "planted" }).info({}, "y");
    expect(raw()).not.toContain("planted");
  });

  it("a registered secret is removed wherever it stands, also where JSON escapes it", () => {
    const secret = 'p"l\\anted secret';
    const { log, raw } = capture([secret]);
    log.info({ x: `a ${secret} b` }, secret);
    expect(raw()).not.toContain("anted");
  });

  it("ids and amounts stay readable: they are what an investigation goes by", () => {
    const { log, lines } = capture();
    const fields = {
      operationId: "op_0198f0a2b3c47d8e9f",
      slackUser: "U0123ABC",
      providerRef: "re_3Nabc",
      orderRef: "ORD-10042",
      atMs: 1_764_400_000_000,
    };
    log.info(fields, "settled");
    expect(lines()[0]).toMatchObject(fields);
  });
});
