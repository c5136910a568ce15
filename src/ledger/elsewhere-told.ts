/** What on-call hears of refunds made elsewhere: one finding for each, whose cards follow what counts. Joins the transaction of the count. */
import type { SqlRunner, Tx } from "../db/connect.js";
import { effectWords } from "../domain/effect-words.js";
import { isOther, type Uncovered } from "../domain/uncovered.js";
import type { LedgerCtx } from "./context.js";
import type { Counted } from "./elsewhere-reads.js";
import { openIncident } from "./incidents.js";
import { confirmedOnWord } from "./on-word.js";

export interface Finding {
  readonly payment: {
    readonly id: string;
    readonly currency: string;
    readonly captured: bigint;
    readonly reserved: bigint;
    readonly refunded: bigint;
    readonly before: bigint;
  };
  readonly foreign: readonly Uncovered[];
  /** Of `foreign`: what no incident of an operation's tells (`toldHere`). */
  readonly told: readonly Uncovered[];
  /** Operations whose id some of it carries, and which asked for it on another payment. */
  readonly ofAnother: ReadonlySet<string>;
  /** What counted before this change. */
  readonly last: Counted;
  readonly elsewhere: bigint;
  readonly overdrawn: boolean;
  /** The payment's, which this change made: what goes, is closed, and comes back is told again. */
  readonly version: bigint;
}

export const sumOf = (uncovered: readonly Uncovered[]): bigint =>
  uncovered.reduce((sum, { minor }) => sum + minor, 0n);

/** $1 references. What rests on a word is judged by it. */
const CONFIRMED_BY = `
SELECT DISTINCT o.provider_ref AS ref FROM operations o
WHERE o.provider_ref = ANY($1::text[]) AND o.status = 'CONFIRMED' AND o.kind = 'refund' AND NOT ${confirmedOnWord("o")}`;

/** $1 operations, $2 payment. Refunds on another one. */
const OF_ANOTHER = `
SELECT o.id FROM operations o JOIN payments p ON p.id = $2
WHERE o.id = ANY($1::text[]) AND o.kind = 'refund' AND o.payment_intent <> p.payment_intent`;

/**
 * Without those under an operation's id, which are a duplicate's or an orphan's incident, unless one is the effect that confirmed it and
 * has grown since, or the operation is another payment's: nobody who looks after this one hears of that. In the payment's currency.
 */
export async function toldHere(
  on: SqlRunner,
  foreign: readonly Uncovered[],
  { id, currency }: Pick<Finding["payment"], "id" | "currency">,
): Promise<Pick<Finding, "told" | "ofAnother">> {
  const counted = foreign.filter(({ effect }) => !isOther(effect, currency));
  const named = counted.filter(({ effect }) => effect.operationId !== null);
  if (named.length === 0) return { told: counted, ofAnother: new Set() };
  const rows = await on.sql<{ ref: string }>("ledger.confirmed_by", CONFIRMED_BY, [
    named.map(({ effect }) => effect.ref),
  ]);
  const others = await on.sql<{ id: string }>("ledger.of_another", OF_ANOTHER, [
    named.map(({ effect }) => effect.operationId),
    id,
  ]);
  const confirming = new Set(rows.map(({ ref }) => ref));
  const ofAnother = new Set(others.map((one) => one.id));
  const told = counted.filter(
    (one) =>
      !named.includes(one) || confirming.has(one.effect.ref) || ofAnother.has(one.effect.operationId ?? ""),
  );
  return { told, ofAnother };
}

/** $1 payment, $2 references, $3 their amounts, $4 kinds. Of which an open incident tells, of the amount with which they were first seen. */
const TOLD_ALREADY = `
SELECT f.ref FROM unnest($2::text[], $3::bigint[]) AS f (ref, amount)
WHERE EXISTS (SELECT 1 FROM incidents i WHERE i.payment_id = $1 AND i.status = 'open' AND i.kind = ANY($4::text[]) AND i.detail -> 'effects' ? f.ref)
  AND EXISTS (SELECT 1 FROM provider_evidence e WHERE e.dedupe_key = 'elsewhere:' || f.ref AND e.payload ->> 'amount' = f.amount::text)`;

/** All that is more now was hidden for a while, and the findings that told of it are open: they say so themselves. */
async function isToldAlready(
  tx: Tx,
  { payment, last }: Finding,
  of: { kinds: readonly string[]; tells: readonly Uncovered[]; more: bigint },
): Promise<boolean> {
  const back = of.tells.filter(({ effect }) => !last.refs.has(effect.ref));
  if (back.length === 0 || sumOf(back) < of.more) return false;
  const rows = await tx.sql<{ ref: string }>("ledger.told_already", TOLD_ALREADY, [
    payment.id,
    back.map(({ effect }) => effect.ref),
    back.map(({ effect }) => effect.amountMinor),
    [...of.kinds],
  ]);
  return rows.length === back.length;
}

/** The sum has grown. */
export async function tellMore(tx: Tx, ctx: LedgerCtx, finding: Finding): Promise<void> {
  const { payment, foreign, told, ofAnother, elsewhere, overdrawn, version } = finding;
  // Too much is too much, whoever made it.
  const tells = overdrawn ? foreign.filter(({ effect }) => !isOther(effect, payment.currency)) : told;
  const more = overdrawn ? elsewhere - payment.before : sumOf(told) - toldBefore(finding);
  if (more <= 0n) return;
  const kinds = overdrawn ? ["overdrawn"] : ["refunded_elsewhere", "overdrawn"];
  if (await isToldAlready(tx, finding, { kinds, tells, more })) return;
  const askedBy = tells.flatMap(({ effect: { ref, operationId: id } }) =>
    id !== null && ofAnother.has(id) ? [`${ref}: ${id}`] : [],
  );
  await openIncident(tx, ctx, {
    kind: overdrawn ? "overdrawn" : "refunded_elsewhere",
    dedupeKey: `elsewhere:${payment.id}:${version}`,
    operationId: null,
    paymentId: payment.id,
    detail: {
      captured: Number(payment.captured),
      reserved: Number(payment.reserved),
      refunded: Number(payment.refunded),
      refundedElsewhere: Number(elsewhere),
      before: Number(elsewhere - more),
      effects: tells.map(({ effect }) => effect.ref),
      ...(askedBy.length === 0 ? {} : { askedBy }),
    },
  });
}

/** What `told` came to before this change. */
function toldBefore({ payment, foreign, told, last }: Finding): bigint {
  if (last.toldHereMinor !== null) return last.toldHereMinor;
  const others = foreign.filter(
    (one) => !told.includes(one) && !isOther(one.effect, payment.currency) && last.refs.has(one.effect.ref),
  );
  return payment.before - sumOf(others);
}

/** Amounts in words of their own currency: a card must not read one as the other. */
export async function tellOther(tx: Tx, ctx: LedgerCtx, finding: Finding): Promise<void> {
  const { payment, foreign, version } = finding;
  await openIncident(tx, ctx, {
    kind: "other_currency",
    dedupeKey: `other_currency:${payment.id}:${version}`,
    operationId: null,
    paymentId: payment.id,
    detail: {
      captured: Number(payment.captured),
      currency: payment.currency,
      paidIn: payment.currency,
      shownIn: [...new Set(foreign.map(({ effect }) => effect.currency))].join(", "),
      effects: foreign.map(({ effect }) => effect.ref),
      amounts: foreign.map(({ effect }) => effectWords(effect)),
    },
  });
}

/** $1 payment, $2 references. Incidents that tell of one of them, and the open ones that tell what is left. */
const TOLD_OF = `
SELECT id FROM incidents WHERE payment_id = $1
  AND (detail -> 'effects' ?| $2::text[] OR status = 'open' AND kind IN ('refunded_elsewhere', 'overdrawn'))`;

/** The cards that told of what counts no more, or counts again, and those that tell what is left, say so. */
export async function tellChanged(
  tx: Tx,
  ctx: LedgerCtx,
  paymentId: string,
  changed: readonly string[],
): Promise<void> {
  const told = await tx.sql<{ id: string }>("ledger.told_of", TOLD_OF, [paymentId, changed]);
  for (const { id } of told) await ctx.notices.touch(tx, { kind: "incident", id });
}
