/** What a provider of bad manners shows of a refund after its first word on it: somebody is told, and nothing is said that it does not show. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "../../src/app/system.js";
import type { Evidence } from "../../src/domain/evidence.js";
import type { OperationId } from "../../src/domain/ids.js";
import { quarantineWords } from "../../src/domain/quarantine-words.js";
import { closeIncident, resolve, secondResolve } from "../../src/ledger/index.js";
import { createPayments, type Payments } from "../../src/payments/index.js";
import { type ReconcileCtx, sweepOrphans } from "../../src/reconcile/index.js";
import { incidentCard } from "../../src/slack/cards/incident-card.js";
import { readIncident } from "../../src/slack/views/ops.js";
import { type CaseWorld, withCaseWorld } from "../cases/case-world.js";
import { SECRET_KEY, withPaymentsSandbox } from "../payments/support.js";
import { withDatabase } from "../support/database.js";
import { type HostileProvider, startHostileProvider, type WireRefund } from "./provider.js";

const database = withDatabase();
const build = withCaseWorld(withPaymentsSandbox());
const DAY_MS = 25 * 3_600_000;
let provider: HostileProvider;
let client: Payments;
let w: CaseWorld;

const made = (): WireRefund[] => ["pi_ORD-1", "pi_ORD-2"].flatMap((payment) => [...provider.made(payment)]);
const worker = (): ReconcileCtx => ({ ...w.worker("w"), provider: client });

beforeAll(async () => {
  provider = await startHostileProvider();
  client = createPayments({ secretKey: SECRET_KEY, apiUrl: provider.url, clock: systemClock });
});
afterAll(async () => {
  await client.close();
  await provider.close();
});
beforeEach(async () => {
  provider.forget();
  w = await build(database.db);
  for (const ref of ["ORD-1", "ORD-2"]) await w.order({ ref, captured: 18_000 });
  // Each list is of what the refunds say of themselves.
  for (const payment of ["pi_ORD-1", "pi_ORD-2"])
    provider.misbehave(payment, {
      list: ({ json }) =>
        json(200, {
          object: "list",
          has_more: false,
          data: made().filter((refund) => refund.payment_intent === payment),
        }),
    });
  provider.misbehave("", {
    list: ({ json }) => json(200, { object: "list", has_more: false, data: made() }),
  });
});

const findings = (): Promise<{ id: string; kind: string; status: string }[]> =>
  database.db.sql(
    undefined,
    "SELECT id, kind, status FROM incidents WHERE kind = 'missing_effect' ORDER BY created_at, id",
  );
const statuses = async (): Promise<string[]> => (await findings()).map(({ status }) => status);

async function nextDay(): Promise<void> {
  await w.advance(DAY_MS);
  await sweepOrphans(worker());
}

async function confirmed(): Promise<{ id: OperationId; refund: WireRefund }> {
  const id = await w.prepared("ORD-1", 2_000n);
  expect(await w.work(worker(), id)).toMatchObject({ status: "CONFIRMED" });
  const [refund] = provider.made("pi_ORD-1");
  if (refund === undefined) throw new Error("nothing was made");
  return { id, refund };
}

describe("a refund that the provider shows as less, after it was confirmed", () => {
  it.each([
    ["of a smaller amount", { amount: 500 }, "of £5.00 GBP, succeeded"],
    ["of nothing", { amount: 0 }, "of £0.00 GBP, succeeded"],
    ["in another currency", { currency: "jpy" }, "of ¥2,000 JPY, succeeded"],
    ["on another payment", { payment_intent: "pi_ORD-2" }, "of £20.00 GBP on pi_ORD-2, succeeded"],
    ["as pending", { status: "pending" }, "of £20.00 GBP, pending"],
    ["in a state nobody knows", { status: "reversed" }, "of £20.00 GBP, reversed"],
  ] as const)("%s: on-call hears of it, once, until it is shown as it was", async (_how, change, says) => {
    const { id, refund } = await confirmed();
    const before = { ...refund };
    await nextDay();
    expect(await statuses()).toEqual([]);
    Object.assign(refund, change);
    await nextDay();
    await nextDay();
    expect(await statuses()).toEqual(["open"]);
    const [finding] = await findings();
    const view = await readIncident(database.db, finding?.id ?? "");
    if (view === null) throw new Error("no finding");
    expect(JSON.stringify(incidentCard(view))).toContain(`${refund.id} ${says}`);
    Object.assign(refund, before);
    await nextDay();
    expect(await statuses()).toEqual(["closed"]);
    expect(await w.now(id)).toMatchObject({ status: "CONFIRMED" });
    expect(provider.posts("pi_ORD-1")).toHaveLength(1);
    await w.intact();
  });

  it("closed by a person while it is less, it is not told again as long as it is", async () => {
    const { refund } = await confirmed();
    Object.assign(refund, { amount: 500 });
    await nextDay();
    const [finding] = await findings();
    const reason = "finance has paid the rest";
    await database.db.tx((tx) =>
      closeIncident(tx, worker(), { id: finding?.id ?? "", by: "U_ONC1", reason }),
    );
    await nextDay();
    await nextDay();
    expect(await statuses()).toEqual(["closed"]);
  });
});

it("a refund that an answer puts on another payment, and no list on its own: the person who decides reads that", async () => {
  const lists = provider.manners("pi_ORD-1");
  provider.misbehave("pi_ORD-1", {
    ...lists,
    commit: (refund) => ({ ...refund, payment_intent: "pi_ORD-2" }),
  });
  const parked = await w.work(worker(), await w.prepared("ORD-1", 2_000n));
  expect(parked).toMatchObject({ status: "QUARANTINED" });
  const [refund] = made();
  expect(quarantineWords(parked.quarantineReason ?? "")).toBe(
    `The provider made something else than was asked for: ${refund?.id} of £20.00 GBP on pi_ORD-2 (differs in payment).`,
  );
  expect(parked.attempts).toBe(1);
  expect(made()).toHaveLength(1);
});

it("a refund whose id has no prefix is one operation's: a person who names it for another is refused", async () => {
  provider.misbehave("pi_ORD-1", {
    ...provider.manners("pi_ORD-1"),
    commit: (one) => ({ ...one, id: "rf-100" }),
  });
  const first = await w.work(worker(), await w.prepared("ORD-1", 2_000n));
  expect(first).toMatchObject({ status: "CONFIRMED", providerRef: "rf-100" });
  provider.misbehave("pi_ORD-2", {
    commits: false,
    post: ({ answer }) => void answer.socket?.destroy(),
    list: ({ json }) => json(200, { object: "list", has_more: false, data: [] }),
  });
  const parked = await w.work(worker(), await w.prepared("ORD-2", 2_000n));
  const named = (evidenceRef: string, by: string) =>
    resolve(worker(), {
      operationId: parked.id,
      expectedVersion: parked.version,
      verb: "confirm",
      by,
      reason: "They say it is done.",
      evidenceRef,
      probe: { says: "absent" },
      needsSecond: false,
      secondWithinMs: 60_000,
    });
  expect(await named("rf-100", "U_ONC1")).toMatchObject({
    outcome: "not_safe",
    code: "anothers_effect",
    other: first.id,
  });
  expect(await named("bank transfer 4711", "U_ONC1")).toMatchObject({ outcome: "applied" });
});

it("a list that shows two refunds under one id says nothing: who decides is not told that nothing is listed", async () => {
  provider.misbehave("pi_ORD-1", {
    post: ({ answer }) => void answer.socket?.destroy(),
    list: ({ json, refunds }) => {
      const [ours] = refunds;
      const other = { ...ours, amount: 300, metadata: { operation_id: "op_else" } };
      json(200, { object: "list", has_more: false, data: ours === undefined ? [] : [ours, other] });
    },
  });
  const parked = await w.work(worker(), await w.prepared("ORD-1", 2_000n));
  const [ours] = provider.made("pi_ORD-1");
  expect(parked).toMatchObject({ status: "QUARANTINED" });
  expect(quarantineWords(parked.quarantineReason ?? "")).toContain(
    `shows two different refunds as ${ours?.id}`,
  );
});

it.each([
  ["no such path", 404, { error: { type: "invalid_request_error", code: "not_found" } }],
  [
    "a refund in it that nobody can read",
    200,
    { object: "list", has_more: false, data: [{ id: "re_odd", object: "refund" }] },
  ],
])(
  "a list of everything that cannot be read (%s) keeps no payment from being compared in its turn",
  async (_why, status, body) => {
    const { id, refund } = await confirmed();
    provider.misbehave("", { list: ({ json }) => json(status, body) });
    Object.assign(refund, { status: "failed", failure_reason: "declined" });
    await nextDay();
    expect(await w.now(id)).toMatchObject({ status: "REVERSED" });
  },
);

it("what was made instead is of another amount by the time a second person agrees: they read that first", async () => {
  provider.misbehave("pi_ORD-1", {
    ...provider.manners("pi_ORD-1"),
    commit: (one) => ({ ...one, amount: 1_500 }),
  });
  const parked = await w.work(worker(), await w.prepared("ORD-1", 2_000n));
  expect(parked).toMatchObject({ status: "QUARANTINED" });
  const shownAs = async (amountMinor: bigint): Promise<Evidence> => {
    const listing = await client.list(parked, { timeoutMs: 3_000 });
    const [effect] = listing.read === "complete" ? listing.effects : [];
    if (effect === undefined) throw new Error("nothing is listed");
    return {
      says: "committed",
      effect: { ...effect, amountMinor },
      postcondition: "fails",
      differs: ["amount"],
    };
  };
  const asked = await resolve(worker(), {
    operationId: parked.id,
    expectedVersion: parked.version,
    verb: "reject",
    by: "U_ONC1",
    reason: "another amount",
    evidenceRef: "their page",
    probe: await shownAs(1_500n),
    needsSecond: true,
    secondWithinMs: 60_000,
  });
  if (asked.outcome !== "needs_second") throw new Error(asked.outcome);
  const agree = { resolutionId: asked.resolution.id, by: "U_ONC2", verdict: "agree", note: null } as const;
  const grown = await shownAs(15_000n);
  expect(await secondResolve(worker(), { ...agree, probe: grown })).toMatchObject({ outcome: "shown_anew" });
  expect(await w.now(parked.id)).toMatchObject({ status: "QUARANTINED" });
  const applied = await secondResolve(worker(), { ...agree, probe: grown, seen: 1 });
  expect(applied).toMatchObject({ outcome: "applied", operation: { status: "REJECTED" } });
  expect((await w.now(parked.id)).result?.detail).toContain("£150.00 GBP");
});

it("an outage takes no payment's turn: two are asked, the others are next when it is over, and those two within the hour", async () => {
  const payments = ["ORD-1", "ORD-2", "ORD-3", "ORD-4", "ORD-5"];
  for (const ref of payments.slice(2)) await w.order({ ref, captured: 18_000 });
  await w.advance(DAY_MS);
  let away = true;
  let asked = 0;
  for (const payment of ["", ...payments.map((ref) => `pi_${ref}`)])
    provider.misbehave(payment, {
      list: ({ json }) => {
        if (payment !== "") asked += 1;
        return away
          ? json(503, { error: { type: "api_error" } })
          : json(200, { object: "list", has_more: false, data: [] });
      },
    });
  expect(await sweepOrphans(worker())).toMatchObject({ read: false, compared: 0 });
  expect(asked).toBe(2);
  away = false;
  expect(await sweepOrphans(worker())).toMatchObject({ read: true, compared: 3 });
  expect(await sweepOrphans(worker()), "not yet").toMatchObject({ compared: 0 });
  await w.advance(3_600_000);
  expect(await sweepOrphans(worker())).toMatchObject({ compared: 2 });
});
