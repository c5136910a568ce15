/**
 * Recovery on the wire, cell by cell: a second provider whose promises each test sets, the real dispatcher and reconciler, a real
 * database. What counts is what the provider was sent and what it made, and then what the row says.
 */
import { afterAll, describe, expect, it } from "vitest";
import type { EffectContract } from "../../src/domain/contract.js";
import { contractBook } from "../../src/domain/contracts.js";
import type { OperationId } from "../../src/domain/ids.js";
import type { OperationStatus } from "../../src/domain/operation.js";
import { type ReconcileCtx, reconcileOne } from "../../src/reconcile/index.js";
import { SECRET_KEY, withPaymentsSandbox } from "../payments/support.js";
import { withDatabase } from "../support/database.js";
import { type CaseWorld, withCaseWorld } from "./case-world.js";
import {
  EXPECTED,
  HAPPENED,
  type Happened,
  KEY_TTL_MS,
  MOMENTS,
  PROVIDERS,
  type ProviderName,
  type Terms,
} from "./contract-table.js";

const database = withDatabase();
const payments = withPaymentsSandbox();
const build = withCaseWorld(payments);
afterAll(() => payments.sandbox.control.disarmAll());

const AMOUNT = 2_000;
const CAPTURED = 18_000;
const NAMES = Object.keys(PROVIDERS) as ProviderName[];

/** A key that outlives every moment of the table. */
const FOR_EVER_MS = 1_000 * KEY_TTL_MS;

function keepTo(w: CaseWorld, terms: Terms): EffectContract {
  w.control.setPromises({
    keyed: terms.keyed,
    keyTtlMs: terms.keyTtlMs ?? FOR_EVER_MS,
    readback: terms.readback.kind === "eventual" ? { lagMs: terms.readback.lagMs } : terms.readback.kind,
    inflightBoundMs: terms.inflightBoundMs,
  });
  return { ...contractBook({ keyTtlMs: KEY_TTL_MS }).refund, ...terms, sources: ["the sandbox keeps to it"] };
}

/** One refund in its own world of one payment. */
class Cell {
  readonly #w: CaseWorld;
  readonly #ref: string;
  readonly #paymentIntent: string;

  constructor(w: CaseWorld, ref: string) {
    this.#w = w;
    this.#ref = ref;
    this.#paymentIntent = `pi_${ref}`;
  }

  /** Sends it once; the answer does not arrive, and what happened happened. */
  async send(ctx: ReconcileCtx, happened: Happened): Promise<OperationId> {
    const { control } = this.#w;
    await this.#w.order({ ref: this.#ref, captured: CAPTURED });
    const id = await this.#w.prepared(this.#ref, BigInt(AMOUNT));
    const match = { method: "POST", paymentIntent: this.#paymentIntent } as const;
    if (happened.startsWith("nothing")) control.arm({ kind: "drop_before_commit", match });
    else control.arm({ kind: "commit_then_drop", match });
    if (happened === "made otherwise") control.arm({ kind: "wrong_answer", amount: AMOUNT + 1, match });
    if (happened === "pending" || happened === "failed after all") {
      control.arm({ kind: "outcome", status: "pending", match });
    }
    expect(await this.#w.look(ctx, id)).toMatchObject({ status: "OUTCOME_UNKNOWN", attempts: 1 });
    control.disarmAll();
    await this.#afterwards(happened, id);
    return id;
  }

  async #afterwards(happened: Happened, id: OperationId): Promise<void> {
    const { control } = this.#w;
    switch (happened) {
      case "made twice":
        return this.#second(id);
      case "nothing, and a person made the same":
        await control.dashboardRefund({ paymentIntent: this.#paymentIntent, amount: AMOUNT });
        return;
      case "failed after all":
        for (const { id: refund } of await this.effects()) {
          await control.advanceRefund(refund, { status: "failed" });
        }
        return;
      case "made, no list to be had":
      case "nothing, no list to be had":
        control.arm({ kind: "read_down", how: "500" });
        return;
      default:
        return;
    }
  }

  /** Another request under the operation's id, by somebody who has the provider's key. */
  async #second(id: OperationId): Promise<void> {
    const answer = await fetch(`${payments.sandbox.url}/v1/refunds`, {
      method: "POST",
      headers: { authorization: `Bearer ${SECRET_KEY}`, "content-type": "application/x-www-form-urlencoded" },
      body: new URLSearchParams({
        payment_intent: this.#paymentIntent,
        amount: String(AMOUNT),
        "metadata[operation_id]": id,
      }),
    });
    expect(answer.status).toBe(200);
  }

  effects() {
    return this.#w.control.effects({ paymentIntent: this.#paymentIntent });
  }

  /** Everything but reads that the provider was asked for on this payment, whatever the path. */
  async orders(): Promise<{ path: string; key: string | null; params: string }[]> {
    const requests = await this.#w.control.requests({ paymentIntent: this.#paymentIntent });
    return requests
      .filter(({ method }) => method !== "GET")
      .map(({ path, idempotencyKey, params }) => ({
        path,
        key: idempotencyKey,
        params: JSON.stringify(params),
      }));
  }

  /** The row's money agrees with its state. */
  async moneyAgrees(status: OperationStatus): Promise<void> {
    const held = ["PREPARED", "DISPATCHED", "OUTCOME_UNKNOWN", "RECONCILING", "QUARANTINED"].includes(status);
    expect(await this.#w.balance(this.#ref)).toMatchObject({
      reserved: held ? AMOUNT : 0,
      refunded: status === "CONFIRMED" ? AMOUNT : 0,
    });
  }
}

const LETTER: Partial<Record<OperationStatus, string>> = {
  CONFIRMED: "C",
  REJECTED: "R",
  PREPARED: "P",
  OUTCOME_UNKNOWN: "L",
  QUARANTINED: "Q",
};

/** How many refunds that did not fail the provider holds after the look. */
function aliveAfter(happened: Happened, letter: string): number {
  const sent = letter === "S" ? 1 : 0;
  switch (happened) {
    case "made twice":
      return 2;
    case "nothing":
    case "nothing, no list to be had":
      return sent;
    // A list that lags did not show what the person made: the contract promised no more.
    case "nothing, and a person made the same":
      return 1 + sent;
    case "failed after all":
      return 0;
    default:
      return 1;
  }
}

describe("the table", () => {
  it("has an entry for each provider, each thing that can have happened, and each moment", () => {
    expect(Object.keys(EXPECTED).sort()).toEqual([...NAMES].sort());
    for (const row of Object.values(EXPECTED)) {
      expect(Object.keys(row).sort()).toEqual([...HAPPENED].sort());
      for (const cell of Object.values(row)) expect(cell).toMatch(/^[CRSPLQ]{5}$/);
    }
  });

  it("calls nothing back by itself: who could be asked to decides nothing that a machine does", () => {
    for (const [name, terms] of Object.entries(PROVIDERS) as [ProviderName, Terms][]) {
      if (!terms.cancellable) continue;
      const without = NAMES.find(
        (other) => JSON.stringify(PROVIDERS[other]) === JSON.stringify({ ...terms, cancellable: false }),
      );
      expect(without, name).toBeDefined();
      if (without !== undefined) expect(EXPECTED[name]).toEqual(EXPECTED[without]);
    }
  });
});

describe.each(NAMES)("a provider with: %s", (name) => {
  it.each(HAPPENED)("%s", async (happened) => {
    const w = await build(database.db);
    const contract = keepTo(w, PROVIDERS[name]);
    const found: string[] = [];
    for (const [index, { afterMs, personAfterMs, when }] of MOMENTS.entries()) {
      const plain = w.worker("w");
      const ctx: ReconcileCtx = {
        ...plain,
        contracts: { ...plain.contracts, refund: contract },
        timing: { ...plain.timing, quarantineAfterMs: personAfterMs },
      };
      const cell = new Cell(w, `ORD-${index}`);
      const id = await cell.send(ctx, happened);
      const before = await cell.orders();
      await w.advance(afterMs);
      await reconcileOne(ctx, id, "evidence");

      const now = await w.now(id);
      const orders = await cell.orders();
      const sent = orders.length - before.length;
      const letter = sent === 1 ? "S" : (LETTER[now.status] ?? now.status);
      found.push(letter);
      expect(sent, `requests that could move money, ${when}`).toBeLessThanOrEqual(1);
      const ours = orders.filter(({ key }) => key === now.idempotencyKey);
      expect(ours.length, when).toBe(now.attempts);
      expect(new Set(ours.map(({ params }) => params)).size, "the body never changes").toBe(1);
      expect(new Set(orders.map(({ path }) => path)), "nothing but refunds").toEqual(
        new Set(["/v1/refunds"]),
      );
      const alive = (await cell.effects()).filter(({ status }) => status !== "failed");
      expect(alive.length, `refunds at the provider, ${when}`).toBe(aliveAfter(happened, letter));
      await cell.moneyAgrees(now.status);
      w.control.disarmAll();
    }
    expect(found.join("")).toBe(EXPECTED[name][happened]);
    await w.intact();
  });
});

describe("a provider that lets go of what waits there", () => {
  it("called back by a person it ends as rejected by what is read, and nothing more is sent", async () => {
    const w = await build(database.db);
    const plain = w.worker("w");
    const refund = keepTo(w, PROVIDERS["no key, exact list, bound, calls back"]);
    const ctx: ReconcileCtx = { ...plain, contracts: { ...plain.contracts, refund } };
    await w.order({ ref: "ORD-1", captured: CAPTURED });
    const id = await w.prepared("ORD-1", BigInt(AMOUNT));
    w.control.arm({ kind: "outcome", status: "requires_action", match: { method: "POST" } });
    expect(await w.work(ctx, id)).toMatchObject({ status: "QUARANTINED", attempts: 1 });
    expect((await w.now(id)).quarantineReason).toMatch(/^pending_too_long/);
    const [effect] = await w.control.effects();
    await w.control.advanceRefund(effect?.id ?? "", { status: "canceled" });
    expect(await reconcileOne(ctx, id, "evidence")).toMatchObject({ status: "REJECTED", attempts: 1 });
    expect(await w.posts()).toHaveLength(1);
    expect(await w.balance("ORD-1")).toMatchObject({ reserved: 0, refunded: 0 });
    await w.intact();
  });
});
