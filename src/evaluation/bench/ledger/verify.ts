/** After every arm: each operation is CONFIRMED by the three right events and one attempt, and the money adds up. */
import type { OpenDb } from "../../../db/connect.js";
import { verifyAudit } from "../../../ledger/index.js";
import { AMOUNT_MINOR, EARLIER_ORDERS } from "./premises.js";

interface Counts {
  total: number;
  right: number;
  reserved: bigint;
  refunded: bigint;
}

/** $1 minor units of each operation. */
const COUNTS = `
SELECT count(*)::int AS total,
  count(*) FILTER (WHERE o.status = 'CONFIRMED' AND o.attempts = 1 AND o.amount_minor = $1::bigint
    AND (SELECT array_agg(e.type ORDER BY e.seq) FROM operation_events e WHERE e.operation_id = o.id)
        = ARRAY['prepare', 'claim', 'settle_confirmed']
    AND (SELECT count(*) FROM attempts a WHERE a.operation_id = o.id AND a.verdict = 'committed') = 1)::int AS right,
  (SELECT sum(reserved) FROM payments)::bigint AS reserved, (SELECT sum(refunded) FROM payments)::bigint AS refunded
FROM operations o`;

/** What is wrong after an arm carried out so many; empty: nothing. `chained`: the whole audit chain is recomputed too. */
export async function wrongWith(db: OpenDb, carriedOut: number, chained: boolean): Promise<string[]> {
  const [counts] = await db.sql<Counts>(undefined, COUNTS, [AMOUNT_MINOR]);
  if (counts === undefined) return ["nothing was counted"];
  const operations = carriedOut + EARLIER_ORDERS;
  const expected = BigInt(operations) * BigInt(AMOUNT_MINOR);
  const audit = chained ? (await verifyAudit(db)).broken : [];
  return [
    ...(counts.total === operations ? [] : [`${operations} were carried out, ${counts.total} are there`]),
    ...(counts.right === counts.total
      ? []
      : [`${counts.total - counts.right} are not CONFIRMED by the right events`]),
    ...(counts.refunded === expected && counts.reserved === 0n
      ? []
      : [`refunded is ${counts.refunded} and reserved ${counts.reserved}, ${expected} and 0 would be right`]),
    ...audit.map((link) => `audit: ${link.what} ${link.where}: ${link.problem}`),
  ];
}
