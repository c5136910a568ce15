/** People, cards and states of the decision table, as values. */
import type { Approval, ApprovalBinding, ApprovalState, Vote } from "../../src/domain/approval.js";
import type { OperationKind, OperationStatus } from "../../src/domain/operation.js";
import type { Policy } from "../../src/domain/policy/policy.js";
import { parsePolicyFile } from "../../src/domain/policy/policy-file.js";
import type { Person, PersonReading } from "../../src/domain/ports/directory.js";

/** The database's time in every case. */
export const NOW = new Date("2026-11-20T12:00:00.000Z");

/** CONTRACT §8's roles and limits. */
export function tablePolicy(options: { selfApproval?: boolean } = {}): Policy {
  const parsed = parsePolicyFile({
    version: 1,
    kinds: {
      refund: {
        auto: { GBP: 5000 },
        approval: [
          { upTo: { GBP: 50000, USD: 50000 }, role: "supervisor", approvers: 1 },
          { upTo: { GBP: 200000, USD: 200000 }, role: "finance", approvers: 2 },
        ],
      },
      cancel_order: { auto: false, approval: [{ role: "supervisor", approvers: 1 }] },
      cancel_subscription: { auto: false, approval: [{ role: "supervisor", approvers: 1 }] },
    },
    approvals: { selfApproval: options.selfApproval ?? false },
    roles: {
      supervisor: { users: ["U_SUP1", "U_SUP2"], limit: { GBP: 50000, USD: 50000 } },
      finance: { users: ["U_FIN1", "U_FIN2"] },
      oncall: { users: ["U_ONC1", "U_ONC2"] },
    },
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.policy;
}

interface PersonSpec {
  readonly roles?: readonly string[];
  readonly standing?: Person["standing"];
  /** Another id of the same human. */
  readonly sameAs?: string;
  readonly rolesUnreadable?: readonly string[];
}

const SUPERVISOR = ["supervisor"] as const;

/** Whoever has the role of the card but not the standing has the role all the same: it must not help them. */
const PEOPLE: Readonly<Record<string, PersonSpec>> = {
  U_AGENT: {},
  U_OTHER: {},
  U_SUP1: { roles: SUPERVISOR },
  U_SUP2: { roles: SUPERVISOR },
  U_ALT1: { roles: SUPERVISOR, sameAs: "U_SUP1" },
  U_FIN1: { roles: ["finance"] },
  U_FIN2: { roles: ["finance"] },
  U_FINALT: { roles: ["finance"], sameAs: "U_FIN1" },
  U_BOTH: { roles: ["supervisor", "finance"] },
  U_ONC1: { roles: ["oncall"] },
  U_GUEST: { roles: ["supervisor", "finance"], standing: "guest" },
  U_BOT: { roles: SUPERVISOR, standing: "bot" },
  U_GONE: { roles: SUPERVISOR, standing: "deactivated" },
  U_INVITED: { roles: SUPERVISOR, standing: "invited" },
  U_STRANGER: { roles: SUPERVISOR, standing: "stranger" },
  U_EXTERN: { roles: SUPERVISOR, standing: "external" },
  U_NOGROUP: { rolesUnreadable: ["supervisor", "finance"] },
};

/** Who cannot be read at all. */
const UNREADABLE = new Set(["U_LOST"]);

export function readingOf(userId: string): PersonReading {
  if (UNREADABLE.has(userId)) return { ok: false, reason: "Slack did not answer" };
  const spec = PEOPLE[userId];
  if (spec === undefined) throw new Error(`nobody is called ${userId}`);
  const self = spec.sameAs ?? userId;
  const ids = [self, ...Object.keys(PEOPLE).filter((id) => PEOPLE[id]?.sameAs === self)];
  return {
    ok: true,
    person: {
      userId,
      ids,
      personKey: `person:${self}`,
      teamId: spec.standing === "external" ? "T_AWAY" : "T_HOME",
      displayName: userId,
      standing: spec.standing ?? "member",
      roles: spec.roles ?? [],
      rolesUnreadable: spec.rolesUnreadable ?? [],
      roleEvidence: Object.fromEntries((spec.roles ?? []).map((role) => [role, "list"])),
      fetchedAt: NOW,
    },
  };
}

export const personKeyOf = (userId: string): string => `person:${PEOPLE[userId]?.sameAs ?? userId}`;

export interface CardSpec {
  readonly amountMinor: bigint;
  readonly currency: string;
  readonly kind: OperationKind;
  readonly role: string;
  readonly approvers: number;
  readonly ladderMinor: bigint;
  readonly isLastLine: boolean;
  readonly confirmAmount: boolean;
  /** Who counted as filer when the card was made, and who counts now. */
  readonly filers: readonly string[];
  readonly filersNow: readonly string[];
  /** The self-approval rule that the card was made under, and the present one. */
  readonly selfBound: boolean;
  readonly selfNow: boolean;
}

const refund = (amountMinor: bigint, more: Partial<CardSpec> = {}): CardSpec => ({
  amountMinor,
  currency: "GBP",
  kind: "refund",
  role: "supervisor",
  approvers: 1,
  ladderMinor: amountMinor,
  isLastLine: false,
  confirmAmount: false,
  filers: ["U_AGENT"],
  filersNow: more.filers ?? ["U_AGENT"],
  selfBound: false,
  selfNow: false,
  ...more,
});
const finance = { role: "finance", approvers: 2, isLastLine: true } as const;
const noMoney = { ladderMinor: 0n, isLastLine: true } as const;

export const CARDS: Readonly<Record<string, CardSpec>> = {
  sup180: refund(18000n),
  sup500: refund(50000n),
  sup501: refund(50001n),
  split: refund(30000n, { ladderMinor: 60000n }),
  splitok: refund(30000n, { ladderMinor: 50000n }),
  jpy: refund(9899n, { currency: "JPY", ...finance }),
  supjpy: refund(9899n, { currency: "JPY" }),
  supjpyl: refund(9899n, { currency: "JPY", isLastLine: true }),
  cancel: refund(0n, { kind: "cancel_order", ...noMoney }),
  subscr: refund(0n, { kind: "cancel_subscription", currency: "", ...noMoney }),
  own180: refund(18000n, { filers: ["U_SUP1"] }),
  own60: refund(6000n, { filers: ["U_SUP1"] }),
  joined: refund(18000n, { filersNow: ["U_AGENT", "U_SUP1"] }),
  both: refund(18000n, { filers: ["U_AGENT", "U_SUP1"] }),
  selfok: refund(18000n, { filers: ["U_SUP1"], selfBound: true, selfNow: true }),
  selfwas: refund(18000n, { filers: ["U_SUP1"], selfBound: true }),
  selfnow: refund(18000n, { filers: ["U_SUP1"], selfNow: true }),
  fin800: refund(80000n, finance),
  fin1200: refund(120000n, { ...finance, confirmAmount: true }),
};

export interface StateSpec {
  readonly state: ApprovalState;
  readonly operation: OperationStatus;
  /** all: as many yes as the card needs; one: one yes; no: somebody's no. */
  readonly votes: "none" | "one" | "all" | "no";
  readonly overdue: boolean;
}

const at = (
  state: ApprovalState,
  operation: OperationStatus,
  votes: StateSpec["votes"],
  overdue = false,
): StateSpec => ({ state, operation, votes, overdue });

export const STATES: Readonly<Record<string, StateSpec>> = {
  pending: at("PENDING", "AWAITING_APPROVAL", "none"),
  "one-vote": at("PENDING", "AWAITING_APPROVAL", "one"),
  approved: at("APPROVED", "AWAITING_APPROVAL", "all"),
  released: at("RELEASED", "PREPARED", "all"),
  sent: at("RELEASED", "DISPATCHED", "all"),
  unknown: at("RELEASED", "OUTCOME_UNKNOWN", "all"),
  quarantined: at("RELEASED", "QUARANTINED", "all"),
  done: at("RELEASED", "CONFIRMED", "all"),
  denied: at("DENIED", "DENIED", "no"),
  expired: at("EXPIRED", "EXPIRED", "none"),
  voided: at("VOIDED", "VOIDED", "none"),
  overdue: at("PENDING", "AWAITING_APPROVAL", "none", true),
  "overdue-voted": at("PENDING", "AWAITING_APPROVAL", "one", true),
  "old-approved": at("APPROVED", "AWAITING_APPROVAL", "all", true),
  "old-released": at("RELEASED", "PREPARED", "all", true),
};

export function cardOf(name: string): CardSpec {
  const card = CARDS[name];
  if (card === undefined) throw new Error(`there is no card ${name}`);
  return card;
}

export function stateOf(name: string): StateSpec {
  const state = STATES[name];
  if (state === undefined) throw new Error(`there is no state ${name}`);
  return state;
}

/** Who has voted how in a state of a card: of the card's own role, in this order. */
export function votersOf(
  card: CardSpec,
  state: StateSpec,
): readonly { userId: string; verdict: Vote["verdict"] }[] {
  const people = card.role === "finance" ? ["U_FIN1", "U_FIN2"] : ["U_SUP2", "U_SUP1"];
  switch (state.votes) {
    case "none":
      return [];
    case "one":
      return people.slice(0, 1).map((userId) => ({ userId, verdict: "approve" }));
    case "all":
      return people.slice(0, card.approvers).map((userId) => ({ userId, verdict: "approve" }));
    case "no":
      return people.slice(0, 1).map((userId) => ({ userId, verdict: "deny" }));
  }
}

/** The approval of a case as a value. */
export function approvalOf(cardName: string, stateName: string): Approval {
  const card = cardOf(cardName);
  const state = stateOf(stateName);
  const votes = votersOf(card, state).map(
    ({ userId, verdict }): Vote => ({
      userId,
      person: personKeyOf(userId),
      verdict,
      note: null,
      role: card.role,
      grantedBy: null,
      cardVersion: 1,
      at: new Date(NOW.getTime() - 60_000),
      seal: null,
    }),
  );
  return {
    id: "apr_00000000000000000000000000000001",
    operationId: "op_00000000000000000000000000000001",
    runId: null,
    turnId: null,
    ticketId: null,
    state: state.state,
    version: 1n,
    cardVersion: 1,
    binding: bindingOf(card),
    bindingHash: "",
    role: card.role,
    approversNeeded: card.approvers,
    confirmAmount: card.confirmAmount,
    predecessorId: null,
    changes: [],
    gate: null,
    expiresAt: new Date(NOW.getTime() + (state.overdue ? -1 : 3_600_000)),
    remindersSent: 0,
    decidedAt: null,
    endCode: null,
    endDetail: null,
    denyNote: null,
    suggestedMinor: null,
    votes,
    createdAt: new Date(NOW.getTime() - 7_200_000),
    updatedAt: NOW,
  };
}

export function bindingOf(card: CardSpec): ApprovalBinding {
  return {
    operationId: "op_00000000000000000000000000000001",
    kind: card.kind,
    customerRef: "CUS-7",
    customerName: "Tom Whitfield",
    orderRef: card.kind === "cancel_subscription" ? null : "ORD-10042",
    subscriptionRef: card.kind === "cancel_subscription" ? "SUB-1" : null,
    itemRefs: [],
    amountMinor: card.amountMinor,
    currency: card.currency,
    atPeriodEnd: card.kind === "cancel_subscription" ? true : null,
    occurrence: 1,
    fingerprint: "f".repeat(64),
    filers: card.filers,
    bindingUnconfirmed: false,
    world: {
      customerRef: "CUS-7",
      ticketCustomerRef: "CUS-7",
      order: null,
      payment: null,
      subscription: null,
    },
    policy: {
      answer: "hold",
      answerHash: "a".repeat(64),
      policyHash: "b".repeat(64),
      reasons: [],
      role: card.role,
      approvers: card.approvers,
      line: card.isLastLine ? 1 : 0,
      isLastLine: card.isLastLine,
      ladderMinor: card.ladderMinor,
      confirmAmount: card.confirmAmount,
      coolingOffMinutes: 0,
      selfApproval: card.selfBound,
    },
    earlier: [],
  };
}
