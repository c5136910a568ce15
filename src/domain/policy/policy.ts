/**
 * The policy: who may do how much, as the file of CONTRACT §8 says it, with every default filled in.
 *
 * A policy is plain data (no sets, no dates, no absent members written as undefined), so that its canonical JSON is its
 * identity: two files that differ in comments, key order or spelled-out defaults are the same policy.
 */
import type { OperationKind } from "../operation.js";
import type { OrderStatus } from "../order.js";

/** Currency code → minor units. A currency that is not named has no limit here, which never means "unlimited". */
export type Limit = Readonly<Record<string, bigint>>;

/** One rung of the ladder. Without `upTo` it covers any amount in any currency (up to `never`). */
export interface ApprovalLine {
  readonly upTo?: Limit;
  readonly role: string;
  /** Number of distinct people, at least 1. */
  readonly approvers: number;
}

/** Whose operations a total adds up. `day` is the whole shop since midnight UTC; the others roll over `windowHours`. */
export const TOTAL_PERS = ["order", "customer", "filer", "shop", "day"] as const;
export type TotalPer = (typeof TOTAL_PERS)[number];

/** Beyond `count` operations, or beyond `amount`, the answer is `then`. What may have been spent counts as spent. */
export interface TotalRule {
  readonly per: TotalPer;
  /** Rolling window in hours, may be decimal. 24 for `day`, where it is the length and not the start of the window. */
  readonly windowHours: number;
  readonly count?: number;
  readonly amount?: Limit;
  readonly then: "hold" | "refuse";
}

/** Above this amount an operation waits this long after its release, with a visible Undo. */
export interface CoolingOff {
  readonly above: bigint;
  readonly minutes: number;
}

/** The rules of one kind of effect. For kinds that move no money all limits are empty and `auto` is a boolean. */
export interface KindRules {
  /** Statuses the order may be in; empty for kinds without an order. */
  readonly orderStatuses: readonly OrderStatus[];
  /** Age limit in days (may be decimal); null: none. Also the window in which an order's earlier refunds add up. */
  readonly windowDays: number | null;
  /** true: no approval is asked for. false, or left out of the file: everything is held. A limit: alone up to it. */
  readonly auto: boolean | Limit;
  /** Above this: refused, whoever asks. */
  readonly never: Limit;
  /** Empty: whatever would be held is refused. */
  readonly approval: readonly ApprovalLine[];
  /** Above this the approver repeats the amount. */
  readonly confirmAmountAbove: Limit;
  readonly totals: readonly TotalRule[];
  readonly coolingOffMinutes: Readonly<Record<string, CoolingOff>>;
}

/** Members by Slack user group and by user id. `limit` absent: up to `never`. */
export interface Role {
  readonly usergroups: readonly string[];
  readonly users: readonly string[];
  readonly limit?: Limit;
}

export interface Policy {
  readonly version: 1;
  readonly kinds: Readonly<Record<OperationKind, KindRules>>;
  readonly approvals: {
    readonly selfApproval: boolean;
    /** Minutes, may be decimal. */
    readonly expireAfterMinutes: number;
    /** Minutes after the request, ascending, may be decimal. */
    readonly remindAfterMinutes: readonly number[];
    readonly escalateTo: readonly string[];
  };
  readonly resolution: {
    readonly resolverMayBeApprover: boolean;
    readonly secondPersonAbove: Limit;
    /** How long a resolution, or a thaw, waits for its second person. Minutes, may be decimal. */
    readonly expireAfterMinutes: number;
  };
  readonly freeze: {
    readonly thawByAnotherPerson: boolean;
    readonly tripOn: {
      readonly unknownPerHour: number;
      readonly duplicates: number;
      readonly orphans: number;
    };
  };
  readonly roles: Readonly<Record<string, Role>>;
}

/** The role that files and confirms; with nobody in it every active full member does. */
export const FILER_ROLE = "filer";
/** The role that sees `/ops`, resolves, freezes and thaws. */
export const ONCALL_ROLE = "oncall";
