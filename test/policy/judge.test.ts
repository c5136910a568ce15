import { beforeEach, describe, expect, it } from "vitest";
import type { Tx } from "../../src/db/connect.js";
import type { Judgement, JudgeSubject } from "../../src/domain/ports/judge.js";
import { gatherFacts } from "../../src/policy/gather-facts.js";
import {
  activatePolicy,
  activePolicy,
  explainDecision,
  explanationJson,
  makeJudge,
  policyVersion,
  readPolicyText,
} from "../../src/policy/index.js";
import { demoShop, getOrder } from "../../src/shop/index.js";
import { CONTRACT_FILE } from "../domain/policy/contract-policy.js";
import { load } from "../shop/shop-context.js";
import { withDatabase } from "../support/database.js";
import { deferred, waitFor } from "../support/wait.js";
import { putDenial, putOperation } from "./ledger-rows.js";

const pg = withDatabase();
const judge = makeJudge();
const contract = readPolicyText(JSON.stringify(CONTRACT_FILE), "contract");
const withRefund = (changes: Record<string, unknown>) =>
  readPolicyText(
    JSON.stringify({
      ...CONTRACT_FILE,
      kinds: { ...CONTRACT_FILE.kinds, refund: { ...CONTRACT_FILE.kinds.refund, ...changes } },
    }),
    "changed",
  );

beforeEach(async () => {
  const [{ now } = { now: new Date() }] = await pg.db.sql<{ now: Date }>(
    undefined,
    "SELECT countersign_now() AS now",
  );
  await load(pg.db, demoShop({ today: now }));
  await activatePolicy(pg.db, contract);
});

async function subject(
  orderRef: string,
  amountMinor: bigint,
  changes: Partial<JudgeSubject> = {},
): Promise<JudgeSubject> {
  const order = await getOrder(pg.db, orderRef);
  if (order === null) throw new Error(`no ${orderRef}`);
  return {
    intent: {
      kind: "refund",
      customerRef: order.customer.ref,
      orderRef,
      subscriptionRef: null,
      amountMinor,
      currency: order.currency,
      atPeriodEnd: null,
      occurrence: 1,
    },
    refundScope: "amount",
    itemRefs: [],
    filers: ["U_AGENT"],
    bindingConfirmed: true,
    customerId: order.customer.id,
    orderId: order.id,
    paymentId: order.payment?.id ?? null,
    subscriptionId: null,
    operationId: null,
    predecessorId: null,
    ...changes,
  };
}
const judged = (of: JudgeSubject): Promise<Judgement> => pg.db.tx((tx) => judge.judge(tx, of));
const brief = ({ answer, approval }: Judgement): string =>
  approval === null ? answer : `${answer} ${approval.role}×${approval.approvers}`;
const why = (judgement: Judgement): string =>
  judgement.rules
    .filter(({ verdict }) => verdict === judgement.answer)
    .map(({ sentence }) => sentence)
    .join("\n");
/** Tom's order of £117.19 and his customer reference, for operations put down. */
const TOM = { orderRef: "ORD-10050", customerRef: "CUS-7" };

describe("the gate over the database's facts", () => {
  it.each([
    ["ORD-1001", 2000n, "allow"],
    ["ORD-10042", 18000n, "hold supervisor×1"],
    ["ORD-JP1", 9899n, "hold finance×2"],
    ["ORD-10021", 100n, "refuse"],
    ["ORD-10060", 100n, "hold supervisor×1"],
    ["A-4472", 100n, "refuse"],
    ["ORD-BIG", 200001n, "refuse"],
    ["ORD-1001", 7901n, "refuse"],
  ])("%s, %s minor units: %s", async (orderRef, amountMinor, expected) => {
    expect(brief(await judged(await subject(orderRef, amountMinor)))).toBe(expected);
  });

  it("carries the hash of the policy it was made under, and an answer hash that a comment does not change", async () => {
    const first = await judged(await subject("ORD-10042", 18000n));
    expect(first.policyHash).toBe(contract.hash);
    await activatePolicy(pg.db, withRefund({ auto: { GBP: 5001, USD: 5000 } }));
    const second = await judged(await subject("ORD-10042", 18000n));
    expect(second.policyHash).not.toBe(first.policyHash);
    expect(second.answerHash).toBe(first.answerHash);
  });

  it("counts what is reserved or refunded on the order in the window, and what was refunded elsewhere", async () => {
    await activatePolicy(pg.db, withRefund({ totals: [] }));
    await putOperation(pg.db, { ...TOM, amountMinor: 3000n, hoursAgo: 29 * 24 });
    await putOperation(pg.db, { ...TOM, amountMinor: 500n, status: "QUARANTINED", hoursAgo: 2 });
    await putOperation(pg.db, { ...TOM, amountMinor: 4000n, hoursAgo: 31 * 24 });
    await putOperation(pg.db, { ...TOM, amountMinor: 4000n, status: "DENIED", counts: false });
    expect(brief(await judged(await subject("ORD-10050", 1500n)))).toBe("allow");
    const above = await judged(await subject("ORD-10050", 1501n));
    expect(brief(above)).toBe("hold supervisor×1");
    expect(why(above)).toContain(
      "£15.01 GBP together with £35.00 GBP already refunded or reserved on this order (£50.01 GBP)",
    );
    await pg.db.sql(undefined, "UPDATE payments SET refunded_elsewhere = 100");
    expect(brief(await judged(await subject("ORD-10050", 1500n)))).toBe("hold supervisor×1");
  });

  it("counts totals per order, customer, filer and shop in their windows and currency", async () => {
    await putOperation(pg.db, {
      ...TOM,
      orderRef: "ORD-10042",
      amountMinor: 15001n,
      hoursAgo: 100,
      filers: ["U_OTHER"],
    });
    await putOperation(pg.db, {
      ...TOM,
      orderRef: "ORD-1001",
      customerRef: "CUS-3",
      currency: "USD",
      amountMinor: 100n,
    });
    const { facts } = await gatherFacts(
      pg.db,
      await subject("ORD-10050", 5000n),
      contract.policy.kinds.refund,
    );
    expect(facts.totals).toEqual([
      { per: "customer", windowHours: 720, scope: "customer:CUS-7", count: 1, amountMinor: 15001n },
      { per: "filer", windowHours: 24, scope: "filer:U_AGENT", count: 1, amountMinor: 0n },
      { per: "order", windowHours: 720, scope: "order:ORD-10050", count: 0, amountMinor: 0n },
      { per: "shop", windowHours: 24, scope: "shop", count: 1, amountMinor: 0n },
    ]);
    expect(why(await judged(await subject("ORD-10050", 5000n)))).toContain(
      "come to £200.01 GBP; more than £200.00 GBP needs",
    );
  });

  it("adds up every filer of a ticket", async () => {
    await putOperation(pg.db, {
      ...TOM,
      orderRef: "ORD-BIG",
      customerRef: "CUS-6",
      amountMinor: 99000n,
      filers: ["U_B"],
    });
    const both = await subject("ORD-10050", 1001n, { filers: ["U_A", "U_B"] });
    expect(why(await judged(both))).toContain("refunds by this filer in 24 hours come to £1,000.01 GBP");
    expect(brief(await judged({ ...both, filers: ["U_A"] }))).toBe("allow");
    expect(brief(await judged({ ...both, filers: [] }))).toBe("allow");
  });

  it("counts a calendar day from midnight UTC", async () => {
    await activatePolicy(pg.db, withRefund({ totals: [{ per: "day", count: 1, then: "refuse" }] }));
    const [{ hours } = { hours: 0 }] = await pg.db.sql<{ hours: number }>(
      undefined,
      "SELECT (EXTRACT(EPOCH FROM (countersign_now() AT TIME ZONE 'UTC')::time) / 3600)::float8 AS hours",
    );
    await putOperation(pg.db, { ...TOM, orderRef: "ORD-10042", hoursAgo: hours + 0.01 });
    expect(brief(await judged(await subject("ORD-1001", 100n)))).toBe("allow");
    await putOperation(pg.db, { ...TOM, orderRef: "ORD-10042", hoursAgo: 0 });
    expect(brief(await judged(await subject("ORD-1001", 100n)))).toBe("refuse");
  });

  it("does not count an operation against itself, nor what was reserved after it", async () => {
    const own = await putOperation(pg.db, {
      ...TOM,
      status: "PREPARED",
      amountMinor: 5000n,
      hoursAgo: 2,
      itemRefs: ["ORD-10050-1"],
    });
    await putOperation(pg.db, {
      ...TOM,
      status: "PREPARED",
      amountMinor: 6000n,
      hoursAgo: 1,
      itemRefs: ["ORD-10050-1"],
    });
    await pg.db.sql(
      undefined,
      "UPDATE payments SET reserved = 11000 WHERE order_id = (SELECT id FROM orders WHERE ref = 'ORD-10050')",
    );
    const again = await subject("ORD-10050", 5000n, {
      operationId: own as `op_${string}`,
      itemRefs: ["ORD-10050-1"],
    });
    const judgement = await judged(again);
    expect(judgement.facts).toMatchObject({ spentOnOrderMinor: 0n, refundableMinor: 5719n, linesTaken: [] });
    expect(brief(judgement)).toBe("allow");
    expect(brief(await judged({ ...again, operationId: null }))).toBe("refuse");
  });

  it("holds an order line that was refunded or reserved before, not one that was denied", async () => {
    await activatePolicy(pg.db, withRefund({ totals: [] }));
    await putOperation(pg.db, { ...TOM, amountMinor: 100n, itemRefs: ["ORD-10050-2"] });
    await putOperation(pg.db, {
      ...TOM,
      amountMinor: 100n,
      itemRefs: ["ORD-10050-3"],
      status: "DENIED",
      counts: false,
    });
    const both = await judged(
      await subject("ORD-10050", 1720n, { itemRefs: ["ORD-10050-3", "ORD-10050-2"] }),
    );
    expect(both.facts.linesTaken).toEqual(["ORD-10050-2"]);
    expect(brief(both)).toBe("hold supervisor×1");
    expect(brief(await judged(await subject("ORD-10050", 820n, { itemRefs: ["ORD-10050-3"] })))).toBe(
      "allow",
    );
  });

  it("holds a successor of a denied operation, also through one that drifted, and says who denied it", async () => {
    const denied = await putOperation(pg.db, { ...TOM, status: "DENIED", counts: false, amountMinor: 100n });
    await putDenial(pg.db, denied, "U_SUP1", "not again");
    const drifted = await putOperation(pg.db, {
      ...TOM,
      status: "VOIDED",
      counts: false,
      predecessorId: denied,
      amountMinor: 100n,
    });
    for (const predecessor of [denied, drifted]) {
      const judgement = await judged(
        await subject("ORD-10050", 100n, { predecessorId: predecessor as `op_${string}` }),
      );
      expect(brief(judgement)).toBe("hold supervisor×1");
      expect(judgement.facts.denied).toMatchObject({ operationId: denied, by: "U_SUP1", note: "not again" });
    }
    const expired = await putOperation(pg.db, {
      ...TOM,
      status: "EXPIRED",
      counts: false,
      amountMinor: 100n,
    });
    expect(
      brief(await judged(await subject("ORD-10050", 100n, { predecessorId: expired as `op_${string}` }))),
    ).toBe("allow");
  });

  it("judges a subscription, which has no order", async () => {
    const { judgement } = await explainDecision(pg.db, {
      kind: "cancel_subscription",
      ref: "SUB-1",
      amountMinor: 0n,
    });
    expect(judgement).toMatchObject({ answer: "allow", facts: { order: null, refundableMinor: null } });
  });

  it("names the scopes to lock and the scopes that count, sorted", async () => {
    const plan = await pg.db.tx(async (tx) => judge.plan(tx, await subject("ORD-10050", 100n)));
    const all = ["customer:CUS-7", "filer:U_AGENT", "order:ORD-10050", "shop"];
    expect(plan).toEqual({ lock: all, count: all });
    await activatePolicy(
      pg.db,
      withRefund({ totals: [{ per: "customer", windowHours: 1, count: 1, then: "hold" }] }),
    );
    expect(await pg.db.tx(async (tx) => makeJudge().plan(tx, await subject("ORD-10050", 100n)))).toEqual({
      lock: ["customer:CUS-7"],
      count: all,
    });
  });
});

describe("the active policy", () => {
  it("cannot change under a transaction that has judged, and the next one sees the new file", async () => {
    const judgedOnce = deferred<void>();
    const goOn = deferred<void>();
    const small = await subject("ORD-1001", 2000n);
    const preparing = pg.db.tx(async (tx: Tx) => {
      await judge.plan(tx, small);
      const judgement = await judge.judge(tx, small);
      judgedOnce.resolve();
      await goOn.promise;
      return judgement;
    });
    await judgedOnce.promise;
    const other = pg.openAnother();
    const stricter = activatePolicy(other, withRefund({ auto: false }));
    await waitFor(async () => {
      const [row] = await pg.db.sql<{ n: number }>(
        undefined,
        "SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
      );
      return (row?.n ?? 0) > 0;
    });
    goOn.resolve();
    expect(await preparing).toMatchObject({ answer: "allow", policyHash: contract.hash });
    expect(await stricter).toEqual({ changed: true });
    expect(brief(await judged(small))).toBe("hold supervisor×1");
  });

  it("that changes between planning and judging has the whole transaction run again under the new one", async () => {
    const small = await subject("ORD-1001", 2000n);
    const stricter = withRefund({
      auto: false,
      totals: [{ per: "shop", windowHours: 1, count: 9, then: "refuse" }],
    });
    const locks: (readonly string[])[] = [];
    const judgement = await pg.db.tx(async (tx: Tx) => {
      const { lock } = await judge.plan(tx, small);
      locks.push(lock);
      if (locks.length === 1) await activatePolicy(pg.openAnother(), stricter);
      return judge.judge(tx, small);
    });
    expect(locks).toHaveLength(2);
    expect(locks[1]).toEqual(["shop"]);
    expect(judgement).toMatchObject({ answer: "hold", policyHash: stricter.hash });
  });

  it("judges under the policy in force also where nothing was planned", async () => {
    const small = await subject("ORD-1001", 2000n);
    expect(await judged(small)).toMatchObject({ policyHash: contract.hash });
    const stricter = withRefund({ auto: false });
    await activatePolicy(pg.db, stricter);
    expect(await pg.db.tx((tx) => judge.judge(tx, small))).toMatchObject({
      answer: "hold",
      policyHash: stricter.hash,
    });
  });

  it("is stored with its text and found again by its hash", async () => {
    await activatePolicy(pg.db, withRefund({ auto: false }));
    expect((await activePolicy(pg.db)).policy.kinds.refund.auto).toBe(false);
    expect(await policyVersion(pg.db, contract.hash)).toEqual(contract.policy);
    const [row] = await pg.db.sql(undefined, "SELECT text_hash, body FROM policy_versions WHERE hash = $1", [
      contract.hash,
    ]);
    expect(row).toEqual({ text_hash: contract.textHash, body: contract.text });
    expect(await activatePolicy(pg.db, contract)).toEqual({ changed: true });
    expect(await activatePolicy(pg.db, contract)).toEqual({ changed: false });
  });

  it("that is missing stops the judging", async () => {
    await pg.db.sql(undefined, "DELETE FROM active_policy");
    await expect(judged(await subject("ORD-1001", 1n))).rejects.toMatchObject({ code: "no_active_policy" });
  });
});

describe("policy explain", () => {
  it("answers as one JSON document with every rule that spoke", async () => {
    const explanation = await explainDecision(pg.db, {
      kind: "refund",
      ref: "ORD-10042",
      amountMinor: 18000n,
    });
    expect(explanationJson(explanation)).toEqual({
      kind: "refund",
      customer: "CUS-7",
      order: "ORD-10042",
      subscription: null,
      amount: 18000,
      currency: "GBP",
      occurrence: 1,
      answer: "hold",
      rules: [
        {
          rule: "auto",
          verdict: "hold",
          sentence: "£180.00 GBP is above what may be refunded without an approval (£50.00 GBP).",
        },
        {
          rule: "approval",
          verdict: "hold",
          sentence: "It needs the approval of one person in the role supervisor.",
        },
      ],
      approval: {
        role: "supervisor",
        approvers: 1,
        line: 0,
        confirmAmount: false,
        selfApproval: false,
        expireAfterMinutes: 1440,
      },
      coolingOffMinutes: 0,
      policyHash: contract.hash,
    });
  });

  it("refuses an unknown reference with a sentence", async () => {
    await expect(explainDecision(pg.db, { kind: "refund", ref: "ORD-0", amountMinor: 1n })).rejects.toThrow(
      "There is no order ORD-0.",
    );
    await expect(
      explainDecision(pg.db, { kind: "cancel_subscription", ref: "SUB-0", amountMinor: 0n }),
    ).rejects.toThrow("There is no subscription SUB-0.");
  });
});
