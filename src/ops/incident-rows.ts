/** Incidents as lists and forms name them: each with the order, the money and the reference by which it is told from the next. */
import { z } from "zod";
import { formatMoney, isCurrency } from "../domain/money.js";
import type { Db } from "../domain/ports/database.js";
import type { Incident } from "../ledger/index.js";
import type { IncidentRow } from "./types.js";

interface About {
  id: string;
  order_ref: string | null;
  subscription_ref: string | null;
  payment_intent: string | null;
  payment_currency: string | null;
  amount_minor: bigint | null;
  currency: string | null;
  provider_ref: string | null;
}

/** $1 incidents. What each is about: its operation, and its payment by id, by its operation, or by the provider's name for it. */
const ABOUT = `
SELECT i.id, (SELECT ref FROM orders WHERE id = COALESCE(p.order_id, o.order_id)) AS order_ref,
       (SELECT ref FROM subscriptions WHERE id = o.subscription_id) AS subscription_ref, p.payment_intent, p.currency AS payment_currency, o.amount_minor, o.currency,
       o.provider_ref
FROM incidents i
LEFT JOIN LATERAL (SELECT * FROM operations WHERE id = i.operation_id OFFSET 0) o ON true
LEFT JOIN LATERAL (SELECT * FROM payments WHERE id = COALESCE(i.payment_id, o.payment_id, (
  SELECT id FROM payments WHERE payment_intent = i.detail ->> 'payment')) OFFSET 0) p ON true
WHERE i.id = ANY ($1::text[])`;

/** In the order in which they come. */
export async function incidentRows(db: Db, incidents: readonly Incident[]): Promise<IncidentRow[]> {
  if (incidents.length === 0) return [];
  const rows = await db.sql<About>("ops.incidents_about", ABOUT, [incidents.map(({ id }) => id)]);
  const about = new Map(rows.map((row) => [row.id, row]));
  return incidents.map((incident) => toRow(incident, about.get(incident.id)));
}

export async function incidentRow(db: Db, incident: Incident): Promise<IncidentRow> {
  const [row] = await incidentRows(db, [incident]);
  return row ?? toRow(incident, undefined);
}

function toRow({ id, kind, operationId, status, createdAt, detail }: Incident, about?: About): IncidentRow {
  const found = Detail.parse(detail);
  return {
    id,
    kind,
    operationId,
    status,
    createdAt,
    target: about?.order_ref ?? about?.subscription_ref ?? found.order ?? found.payment ?? null,
    amount: amountOf(found, about),
    references: referencesOf(found, about),
  };
}

const word = z.string().nullish().catch(null);
const minor = z.number().int().nullish().catch(null);
const Effect = z.object({ ref: z.string() });

/** What the kinds store of it; anything else is told by the card. */
const Detail = z
  .object({
    ref: word,
    effect: word,
    providerRef: word,
    second: word,
    order: word,
    payment: word,
    amount: minor,
    currency: word,
    refundedElsewhere: minor,
    before: minor,
    made: word,
    amounts: z.array(z.string()).catch([]),
    effects: z.array(z.union([z.string(), Effect])).catch([]),
  })
  .catch({
    ref: null,
    effect: null,
    providerRef: null,
    second: null,
    order: null,
    payment: null,
    amount: null,
    currency: null,
    refundedElsewhere: null,
    before: null,
    made: null,
    amounts: [],
    effects: [],
  });
type Detail = z.output<typeof Detail>;

/** The money that was found, else that of its operation; null: it is about none. */
function amountOf(found: Detail, about: About | undefined): string | null {
  const currency = found.currency ?? about?.payment_currency ?? about?.currency ?? null;
  if (found.amounts.length > 0) return found.amounts.join("; ");
  if (found.made != null) return found.made;
  if (found.amount != null) return amountText(BigInt(found.amount), currency);
  if (found.refundedElsewhere != null)
    return amountText(BigInt(found.refundedElsewhere - (found.before ?? 0)), currency);
  const asked = about?.amount_minor ?? null;
  return asked === null || asked === 0n ? null : amountText(asked, about?.currency ?? currency);
}

const amountText = (amountMinor: bigint, currency: string | null): string =>
  currency !== null && isCurrency(currency.toUpperCase())
    ? formatMoney({ amountMinor, currency: currency.toUpperCase() })
    : `${amountMinor} minor units`;

/** The provider's, each once; those that the amount names already are not told twice. */
function referencesOf(found: Detail, about: About | undefined): readonly string[] {
  const named = [
    found.ref,
    found.effect,
    found.providerRef,
    found.second,
    ...found.effects.map((one) => (typeof one === "string" ? one : one.ref)),
  ].flatMap((ref) => (ref == null || ref === "" ? [] : [ref]));
  const own = about?.provider_ref ?? null;
  const all = named.length === 0 && own !== null ? [own] : named;
  const told = [found.made ?? "", ...found.amounts].join(" ");
  const refs = [...new Set(all)].filter((ref) => !told.includes(ref));
  // Where the provider's page is looked up, if nothing of it was found.
  const payment = about?.payment_intent ?? null;
  return refs.length === 0 && told.trim() === "" && payment !== null ? [payment] : refs;
}
