/** View data for tests of pure cards: a held refund of £180.00, and changes to it. */
import type { Approval, ApprovalState, Change, WorldSnapshot } from "../../../src/domain/approval.js";
import type { OperationStatus } from "../../../src/domain/operation.js";
import type { RunState } from "../../../src/domain/run.js";
import type { ListedRun, Run, Ticket } from "../../../src/runs/index.js";
import type { ApprovalView } from "../../../src/slack/cards/approval-card.js";
import type { RunCardView } from "../../../src/slack/cards/run-card.js";
import type { OperationFacts } from "../../../src/slack/cards/sentences.js";

const ID = "0192d3a4b5c6d7e8f90a1b2c3d4e5f60";
const AT = new Date("2026-11-29T12:00:00Z");

export function operationOf(changes: Partial<OperationFacts> = {}): OperationFacts {
  return {
    id: `op_${ID}`,
    kind: "refund",
    status: "AWAITING_APPROVAL",
    amountMinor: 18_000n,
    currency: "GBP",
    occurrence: 1,
    customerRef: "CUS-7",
    customerName: "Tom Whitfield",
    orderRef: "ORD-10042",
    subscriptionRef: null,
    atPeriodEnd: null,
    refundScope: "everything_left",
    leftMinor: 18_000n,
    items: [],
    reason: "",
    providerTarget: "pi_1",
    providerRef: "re_1",
    providerStatus: null,
    result: null,
    quarantineReason: null,
    notBefore: null,
    attempts: 0,
    slowedDown: false,
    frozen: null,
    approvedBy: [],
    filers: ["U_AGENT"],
    ticket: null,
    unknownSince: null,
    resolvedByPerson: false,
    settledBy: [],
    referenceGiven: false,
    duplicates: [],
    createdAt: AT,
    updatedAt: AT,
    ...changes,
  };
}

export interface ApprovalFacts {
  money: { amountMinor: bigint; currency: string };
  customerName: string;
  customerRef: string;
  orderRef: string;
  status: string;
  reason: string;
  itemRefs: string[];
  reasons: string[];
  note: string | null;
  endDetail: string;
  state: ApprovalState;
  operationStatus: OperationStatus;
  changes: Change[];
  earlier: number;
  /** What was paid and what is left before this; left out: exactly the amount. Minor units. */
  paid?: Pick<NonNullable<WorldSnapshot["payment"]>, "capturedMinor" | "refundableMinor" | "spent">;
}

export function approvalViewOf(facts: ApprovalFacts): ApprovalView {
  const { amountMinor, currency } = facts.money;
  const operation = operationOf({
    status: facts.operationStatus,
    amountMinor,
    currency,
    customerName: facts.customerName,
    customerRef: facts.customerRef,
    orderRef: facts.orderRef,
    reason: facts.reason,
    items: facts.itemRefs.map((ref) => ({ ref, name: ref })),
  });
  const decided = facts.state === "PENDING" || facts.state === "EXPIRED" ? null : AT;
  const verdict = facts.state === "DENIED" ? ("deny" as const) : ("approve" as const);
  const approval: Approval = {
    id: `apr_${ID}`,
    operationId: operation.id,
    runId: null,
    turnId: null,
    ticketId: null,
    state: facts.state,
    version: 1n,
    cardVersion: 1,
    binding: {
      operationId: operation.id,
      kind: "refund",
      customerRef: facts.customerRef,
      customerName: facts.customerName,
      orderRef: facts.orderRef,
      subscriptionRef: null,
      itemRefs: facts.itemRefs,
      amountMinor,
      currency,
      atPeriodEnd: null,
      occurrence: 1,
      fingerprint: "f",
      filers: ["U_AGENT"],
      bindingUnconfirmed: false,
      world: {
        customerRef: facts.customerRef,
        ticketCustomerRef: facts.customerRef,
        order: { ref: facts.orderRef, status: facts.status, currency, customerRef: facts.customerRef },
        payment: {
          ...(facts.paid ?? { capturedMinor: amountMinor, refundableMinor: amountMinor }),
          currency,
        },
        subscription: null,
      },
      policy: {
        answer: "hold",
        answerHash: "a",
        policyHash: "p",
        reasons: facts.reasons,
        role: "supervisor",
        approvers: 1,
        line: 0,
        confirmAmount: false,
        coolingOffMinutes: 0,
        selfApproval: false,
        isLastLine: false,
        ladderMinor: amountMinor,
      },
      earlier: Array.from({ length: facts.earlier }, (_unused, n) => ({
        operationId: `op_${ID}` as const,
        status: "DENIED",
        amountMinor,
        currency,
        at: AT.toISOString(),
        denied: { by: "U_SUP1", at: AT.toISOString(), note: `${n}${facts.endDetail}` },
      })),
    },
    bindingHash: "h",
    role: "supervisor",
    approversNeeded: 1,
    confirmAmount: false,
    predecessorId: null,
    changes: facts.changes,
    gate: null,
    expiresAt: new Date(AT.getTime() + 86_400_000),
    remindersSent: 0,
    decidedAt: decided,
    endCode: null,
    endDetail: facts.endDetail,
    denyNote: facts.state === "DENIED" ? facts.note : null,
    suggestedMinor: null,
    votes:
      decided === null || facts.state === "VOIDED"
        ? []
        : [
            {
              userId: "U_SUP1",
              person: "T_HOME:U_SUP1",
              verdict,
              note: facts.note,
              role: "supervisor",
              grantedBy: null,
              cardVersion: 1,
              at: AT,
              seal: null,
            },
          ],
    createdAt: AT,
    updatedAt: AT,
  };
  return {
    approval,
    operation,
    waitsFor: 0,
    successor: false,
    changedSince: [],
    customerConfirmed: false,
    confirmedBy: null,
    instead: null,
  };
}

export function ticketOf(changes: Partial<Ticket> = {}): Ticket {
  return {
    id: `tkt_${ID}`,
    ref: null,
    source: "message",
    teamId: "T_HOME",
    channelId: "C_TICK",
    messageTs: "1796000000.000100",
    threadTs: "1796000000.000100",
    filer: "U_AGENT",
    filers: ["U_AGENT"],
    text: "refund ORD-10042",
    files: [],
    customerId: null,
    customerRef: null,
    customerName: null,
    binding: "none",
    candidates: [],
    boundBy: null,
    version: 1n,
    createdAt: AT,
    ...changes,
  };
}

/** A run as a list of a person's own tickets has it. */
export function listedRunOf(): ListedRun {
  const run: Run = {
    id: `run_${ID}`,
    ticketId: `tkt_${ID}`,
    state: "running",
    version: 1n,
    planner: "scripted",
    model: null,
    ending: null,
    cancelRequestedBy: null,
    stepsUsed: 1,
    stepsMax: 12,
    inputTokensUsed: 0n,
    outputTokensUsed: 0n,
    costUsedMicroUsd: 0n,
    costMaxMicroUsd: null,
    activeMs: 0,
    deadlineMs: 60_000,
    modelFailures: 0,
    dueAt: null,
    leaseToken: 1n,
    createdAt: AT,
    updatedAt: AT,
  };
  return { run, excerpt: "refund ORD-10042", filer: "U_AGENT", message: null };
}

export interface RunFacts {
  state: RunState;
  prose: string;
  ending: string | null;
  calls: readonly { name: string; input: { [key: string]: string } }[];
  about: OperationFacts;
}

/** A run of one turn with these calls; the first names the operation. */
export function runOf({ state, prose, ending, calls, about }: RunFacts): RunCardView {
  return {
    operations: new Map([[about.id, about]]),
    view: {
      run: {
        id: `run_${ID}`,
        ticketId: `tkt_${ID}`,
        state,
        version: 1n,
        planner: "messages-api",
        model: (ending ?? "").slice(0, 50),
        ending:
          ending === null
            ? null
            : {
                code: "end_turn",
                detail: ending,
                plannerSuccess: true,
                verifiedSuccess: true,
                constraintsKept: true,
              },
        cancelRequestedBy: null,
        stepsUsed: 1,
        stepsMax: 12,
        inputTokensUsed: 0n,
        outputTokensUsed: 0n,
        costUsedMicroUsd: 1n,
        costMaxMicroUsd: null,
        activeMs: 0,
        deadlineMs: 1,
        modelFailures: 0,
        dueAt: null,
        leaseToken: 1n,
        createdAt: AT,
        updatedAt: AT,
      },
      ticket: ticketOf(),
      notes: [],
      turns: [
        {
          id: `turn_${ID}`,
          runId: `run_${ID}`,
          seq: 1,
          state: "recorded",
          content: [{ type: "text", text: prose }],
          stopReason: "tool_use",
          stopDetails: null,
          model: null,
          usage: {},
          costMicroUsd: 0n,
          createdAt: AT,
        },
      ],
      calls: calls.map(({ name, input }, position) => ({
        id: `call_${ID}`,
        runId: `run_${ID}`,
        turnId: `turn_${ID}`,
        position,
        toolUseId: "toolu_1",
        name: position % 2 === 0 ? "get_order" : name,
        input,
        state: "held",
        operationId: position === 0 ? about.id : null,
        replayed: false,
        decision: null,
        decisionDetail: null,
        result: null,
        resultJson: null,
        isError: null,
        createdAt: AT,
        finishedAt: null,
      })),
    },
  };
}

/** A refund of £180.00 that nobody has said anything about; what a test is about is laid over it. */
export const TOM_REFUND = {
  money: { amountMinor: 18_000n, currency: "GBP" },
  customerName: "Tom Whitfield",
  customerRef: "CUS-7",
  orderRef: "ORD-10042",
  status: "delivered",
  reason: "",
  itemRefs: [],
  reasons: [],
  note: null,
  endDetail: "",
  changes: [],
  earlier: 0,
} as const satisfies Partial<ApprovalFacts>;
