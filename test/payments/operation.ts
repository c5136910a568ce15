/** Operations as the ledger would hand them to the adapter. */
import type { Operation } from "../../src/domain/operation.js";

let counter = 0;

/** A prepared refund of 20.00 GBP of `pi_1`, unless said otherwise. */
export function anOperation(changes: Partial<Operation> = {}): Operation {
  counter += 1;
  const id = `op_${counter.toString(16).padStart(32, "0")}` as const;
  const at = new Date("2026-11-29T12:00:00Z");
  return {
    id,
    key: `refund:CUS-7:ORD-1:2000:GBP#${counter}`,
    kind: "refund",
    customerRef: "CUS-7",
    orderRef: "ORD-1",
    subscriptionRef: null,
    amountMinor: 2_000n,
    currency: "GBP",
    atPeriodEnd: null,
    occurrence: 1,
    status: "DISPATCHED",
    version: 1n,
    fingerprint: "f".repeat(64),
    contractVersion: "1",
    idempotencyKey: `countersign-${id}`,
    paymentIntent: "pi_1",
    providerSubscription: null,
    itemRefs: [],
    refundScope: "amount",
    reason: "",
    policyHash: "p".repeat(64),
    approvalId: null,
    approvedBy: [],
    predecessorId: null,
    ownerRunId: null,
    ticketId: null,
    filers: [],
    providerRef: null,
    result: null,
    quarantineReason: null,
    attempts: 1,
    leaseToken: 1n,
    notBefore: null,
    firstClaimedAt: at,
    unknownSince: null,
    resolvedByPerson: false,
    createdAt: at,
    updatedAt: at,
    ...changes,
  };
}

export const aCancellation = (atPeriodEnd: boolean): Operation =>
  anOperation({
    kind: "cancel_subscription",
    orderRef: null,
    subscriptionRef: "SUB-1",
    amountMinor: 0n,
    currency: "",
    atPeriodEnd,
    paymentIntent: null,
    providerSubscription: "sub_1",
    refundScope: null,
  });
