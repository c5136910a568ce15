/** Operations as cards show them, from rows. Reads only. */
import { z } from "zod";
import type { SqlRunner } from "../../db/connect.js";
import type { Frozen } from "../../domain/frozen.js";
import type { OperationId, TicketId } from "../../domain/ids.js";
import { formatMoney, isCurrency } from "../../domain/money.js";
import type { OperationKind, OperationStatus, RefundScope } from "../../domain/operation.js";
import { REFERENCE_IS_GIVEN, SLOWED_DOWN } from "../../ops/index.js";
import type { OperationFacts } from "../cards/sentences.js";
import { withoutAddresses } from "../text/addresses.js";
import type { TicketPlace } from "../text/link.js";

interface Row {
  id: OperationId;
  kind: OperationKind;
  status: OperationStatus;
  amount_minor: bigint;
  currency: string;
  occurrence: number;
  customer_ref: string;
  customer_name: string;
  order_ref: string | null;
  subscription_ref: string | null;
  at_period_end: boolean | null;
  refund_scope: RefundScope | null;
  left_minor: bigint;
  items: { ref: string; name: string | null }[];
  reason: string;
  payment_intent: string | null;
  provider_subscription: string | null;
  provider_ref: string | null;
  provider_status: string | null;
  result: { code?: unknown; detail?: unknown } | null;
  quarantine_reason: string | null;
  not_before: Date | null;
  attempts: number;
  slowed_down: boolean;
  frozen_kind: Frozen["kind"] | null;
  frozen_at: Date | null;
  frozen_by: string | null;
  frozen_reason: string | null;
  approved_by: string[];
  filers: string[];
  ticket_id: TicketId | null;
  ticket_ref: string | null;
  ticket_channel: string | null;
  ticket_ts: string | null;
  unknown_since: Date | null;
  resolved_by_person: boolean;
  settled_by: string[] | null;
  reference_given: boolean;
  duplicates: unknown;
  created_at: Date;
  updated_at: Date;
}

// $1 operation ids. One row for each that exists.
const SELECT = `
SELECT o.id, o.kind, o.status, o.amount_minor, o.currency, o.occurrence, o.customer_ref, c.name AS customer_name, o.order_ref,
       o.subscription_ref, o.at_period_end, o.refund_scope, o.reason, o.payment_intent, o.provider_subscription, o.provider_ref,
       o.provider_status, o.result, o.quarantine_reason, o.not_before, o.attempts,
       ${SLOWED_DOWN} AS slowed_down, o.approved_by, o.filers, o.ticket_id, t.ref AS ticket_ref,
       t.channel_id AS ticket_channel, coalesce(t.thread_ts, t.message_ts) AS ticket_ts, o.unknown_since, o.resolved_by_person,
       CASE WHEN o.status IN ('CONFIRMED', 'REJECTED') AND o.resolved_by_person THEN (
         SELECT array_remove(ARRAY[r.by, r.second_by], NULL) FROM resolutions r
         WHERE r.operation_id = o.id AND r.verb = CASE o.status WHEN 'CONFIRMED' THEN 'confirm' ELSE 'reject' END AND r.state = 'applied'
         ORDER BY r.operation_version DESC LIMIT 1) END AS settled_by,
       ${REFERENCE_IS_GIVEN} AS reference_given,
       (SELECT jsonb_agg(d.detail ORDER BY d.created_at, d.id) FROM incidents d
         WHERE d.operation_id = o.id AND d.kind = 'duplicate_effect') AS duplicates,
       o.created_at, o.updated_at,
       f.kind AS frozen_kind, f.at AS frozen_at, f.by AS frozen_by, f.reason AS frozen_reason,
       coalesce((SELECT greatest(payment_left(p), 0) FROM payments p
         WHERE p.order_id = o.order_id), 0) AS left_minor,
       coalesce((SELECT jsonb_agg(jsonb_build_object('ref', r.ref, 'name', i.name) ORDER BY r.at)
         FROM unnest(o.item_refs) WITH ORDINALITY AS r (ref, at)
         LEFT JOIN order_items i ON i.order_id = o.order_id AND i.ref = r.ref), '[]') AS items
  FROM operations o JOIN customers c ON c.id = o.customer_id LEFT JOIN tickets t ON t.id = o.ticket_id
  LEFT JOIN LATERAL (SELECT kind, at, by, reason FROM freeze_switches WHERE frozen AND kind IN ('all', o.kind)
    ORDER BY at, kind LIMIT 1) f ON true
 WHERE o.id = ANY ($1)`;

const Shown = z.object({ ref: z.string(), amountMinor: z.number().int(), currency: z.string() });
/** As whoever found them stored them: the second beside the known one, all of them, or a reference alone. */
const Duplicate = z
  .object({
    second: z.string().optional(),
    amount: z.number().int().optional(),
    currency: z.string().optional(),
    ref: z.string().optional(),
    effects: z.array(Shown).default([]),
  })
  .catch({ effects: [] });

/** "£180.00 GBP (re_2)" of each effect that is not its own, once. */
function duplicatesIn(details: unknown, own: string | null): readonly string[] {
  const found = new Map<string, string>();
  for (const detail of z.array(Duplicate).catch([]).parse(details)) {
    const { second, amount, currency, ref, effects } = detail;
    const beside = second ?? ref;
    if (beside !== undefined && !found.has(beside))
      found.set(beside, shownAs(beside, amount ?? null, currency ?? null));
    for (const one of effects) found.set(one.ref, shownAs(one.ref, one.amountMinor, one.currency));
  }
  if (own !== null) found.delete(own);
  return [...found.values()];
}

const shownAs = (ref: string, minor: number | null, currency: string | null): string =>
  minor === null || currency === null || !isCurrency(currency)
    ? ref
    : `${formatMoney({ amountMinor: BigInt(minor), currency })} (${ref})`;

export async function readOperations(
  db: SqlRunner,
  ids: readonly OperationId[],
): Promise<ReadonlyMap<OperationId, OperationFacts>> {
  if (ids.length === 0) return new Map();
  const rows = await db.sql<Row>("slack.operations", SELECT, [[...new Set(ids)]]);
  return new Map(rows.map((row) => [row.id, factsOf(row)]));
}

export async function readOperation(db: SqlRunner, id: OperationId): Promise<OperationFacts | null> {
  return (await readOperations(db, [id])).get(id) ?? null;
}

function placeOf({ ticket_id: id, ticket_ref: ref, ticket_channel, ticket_ts }: Row): TicketPlace | null {
  if (id === null) return null;
  const message =
    ticket_channel === null || ticket_ts === null ? null : { channelId: ticket_channel, ts: ticket_ts };
  return { id, ref, message };
}

function factsOf(row: Row): OperationFacts {
  return {
    id: row.id,
    kind: row.kind,
    status: row.status,
    amountMinor: row.amount_minor,
    currency: row.currency,
    occurrence: row.occurrence,
    customerRef: row.customer_ref,
    customerName: withoutAddresses(row.customer_name),
    orderRef: row.order_ref,
    subscriptionRef: row.subscription_ref,
    atPeriodEnd: row.at_period_end,
    refundScope: row.refund_scope,
    leftMinor: row.left_minor,
    items: row.items.map(({ ref, name }) => ({ ref, name: name === null ? null : withoutAddresses(name) })),
    reason: row.reason,
    providerTarget: row.payment_intent ?? row.provider_subscription,
    providerRef: row.provider_ref,
    providerStatus: row.provider_status,
    result:
      row.result === null
        ? null
        : { code: String(row.result.code ?? ""), detail: String(row.result.detail ?? "") },
    quarantineReason: row.quarantine_reason,
    notBefore: row.not_before,
    attempts: row.attempts,
    slowedDown: row.slowed_down,
    frozen:
      row.frozen_kind === null
        ? null
        : {
            kind: row.frozen_kind,
            since: row.frozen_at,
            by: row.frozen_by,
            reason: row.frozen_reason,
          },
    approvedBy: row.approved_by,
    filers: row.filers,
    ticket: placeOf(row),
    unknownSince: row.unknown_since,
    resolvedByPerson: row.resolved_by_person,
    settledBy: row.settled_by ?? [],
    referenceGiven: row.reference_given,
    duplicates: duplicatesIn(row.duplicates, row.provider_ref),
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}
