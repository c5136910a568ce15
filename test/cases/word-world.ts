/** Operations that a person vouches for, beside the provider: a world of its own for each test file that imports it. */

import { beforeEach, expect } from "vitest";
import { systemClock } from "../../src/app/system.js";
import { probe, readProvider } from "../../src/dispatch/index.js";
import type { OperationId } from "../../src/domain/ids.js";
import type { Operation } from "../../src/domain/operation.js";
import { type OpsUseCases, opsUseCases } from "../../src/ops/index.js";
import { reconcileOne } from "../../src/reconcile/index.js";
import { signatureHeader } from "../../src/sandbox/payments/index.js";
import { incidentCard } from "../../src/slack/cards/incident-card.js";
import { readIncident } from "../../src/slack/views/ops.js";
import { SECRET_KEY, WEBHOOK_SECRET, withPaymentsSandbox } from "../payments/support.js";
import { withDatabase } from "../support/database.js";
import { type CaseWorld, withCaseWorld } from "./case-world.js";

export const database = withDatabase();
export const payments = withPaymentsSandbox();
const build = withCaseWorld(payments);
export const LAG_MS = 700_000;
export let w: CaseWorld;
export let ops: OpsUseCases;

beforeEach(async () => {
  w = await build(database.db);
  for (const ref of ["ORD-1", "ORD-2"]) await w.order({ ref, captured: 18_000 });
  const ctx = w.worker("ops");
  ops = opsUseCases({
    db: w.db,
    ledger: ctx,
    directory: w.h.people,
    notices: w.h.ctx.notices,
    activePolicy: w.h.ctx.activePolicy,
    log: w.h.ctx.log,
    maxAttempts: 8,
    probe: async (operation) => (await probe(ctx, operation)).evidence,
    read: async (operation) => (await readProvider(ctx, operation)).evidence,
    reconcile: (id) => reconcileOne(ctx, id, "evidence"),
    healthParts: async () => [],
  });
});

/** Sent, its outcome unknown for too long. `made`: the provider did it all the same. */
export async function parked(order: string, made: boolean, amount = 2_000n): Promise<Operation> {
  const down = w.control.arm({ kind: "read_down", how: "drop" });
  const lost = w.control.arm(
    made
      ? { kind: "commit_then_drop", onReplay: true, times: null }
      : { kind: "drop_before_commit", times: null },
  );
  const operation = await w.work(w.worker("w"), await w.prepared(order, amount));
  w.control.disarm(lost);
  w.control.disarm(down);
  expect(operation.status).toBe("QUARANTINED");
  return operation;
}

/** Sent once without effect, and parked beside a refund of the same amount that somebody made by hand. */
export async function besideStranger(): Promise<{ operation: Operation; stranger: string }> {
  const lost = w.control.arm({ kind: "drop_before_commit", times: null });
  const id = await w.prepared("ORD-1", 2_000n);
  await w.look(w.worker("w"), id);
  w.control.disarm(lost);
  await w.control.dashboardRefund({ paymentIntent: "pi_ORD-1", amount: 2_000 });
  const [made] = await w.control.effects();
  const operation = await w.work(w.worker("w"), id);
  expect(operation.quarantineReason).toContain("unattributed_effect");
  return { operation, stranger: made?.id ?? "" };
}

export const form = ({ id }: Operation, evidenceRef: string) =>
  ({ ref: id, verb: "confirm", userId: "U_ONC1", reason: "They say it is done.", evidenceRef }) as const;

export async function confirmed(operation: Operation, evidence: string): Promise<void> {
  const outcome = await ops.resolve(form(operation, evidence));
  expect(outcome).toMatchObject({ outcome: "resolved", operation: { status: "CONFIRMED" } });
}

/** As `confirmed`, while the provider cannot be read. */
export async function confirmedUnasked(operation: Operation, evidence: string): Promise<void> {
  const down = w.control.arm({ kind: "read_down", how: "drop" });
  await confirmed(operation, evidence);
  w.control.disarm(down);
}

export const incidents = (): Promise<{ id: string; kind: string; status: string; operation: string }[]> =>
  database.db.sql(
    undefined,
    "SELECT id, kind, status, operation_id AS operation FROM incidents ORDER BY created_at, id",
  );
export const kinds = async (): Promise<string[]> => (await incidents()).map(({ kind }) => kind);

export async function cardOf(kind: string): Promise<string> {
  const found = (await incidents()).find((one) => one.kind === kind);
  const view = await readIncident(database.db, found?.id ?? "");
  if (view === null) throw new Error(`no ${kind}`);
  return JSON.stringify(incidentCard(view).blocks);
}

export const books = async (order: string) => {
  const [row] = await database.db.sql<{ reserved: number; refunded: number; elsewhere: number }>(
    undefined,
    `SELECT reserved::int, refunded::int, refunded_elsewhere::int AS elsewhere FROM payments WHERE payment_intent = $1`,
    [`pi_${order}`],
  );
  return row;
};

export const effectsOf = async (id: OperationId): Promise<string[]> =>
  (await w.control.effects()).filter((one) => one.operationId === id).map((one) => one.id);

export async function refundUnder(operationId: string, order: string, amount: number): Promise<string> {
  const answer = await fetch(`${payments.sandbox.url}/v1/refunds`, {
    method: "POST",
    headers: { authorization: `Bearer ${SECRET_KEY}`, "content-type": "application/x-www-form-urlencoded" },
    body: new URLSearchParams({
      payment_intent: `pi_${order}`,
      amount: String(amount),
      "metadata[operation_id]": operationId,
    }),
  });
  expect(answer.status).toBe(200);
  const { id } = (await answer.json()) as { id: string };
  return id;
}

export const signed = (body: Buffer): string =>
  signatureHeader(body.toString("utf8"), WEBHOOK_SECRET, Math.floor(systemClock.now().getTime() / 1000));

export async function hearAll(): Promise<void> {
  for (const { body } of await w.control.events()) {
    const raw = Buffer.from(body);
    expect(await w.hear(w.worker("app"), raw, signed(raw))).toBe(200);
  }
}
