/** What the log tells of the policy in force, and whether a process of ours said so. */
import type { SqlRunner } from "../db/connect.js";
import type { JsonObject } from "../domain/json.js";
import type { Seals } from "../domain/seals.js";
import { dataIn } from "./audit-check.js";
import { policyHolds, sealPolicy } from "./decision-seals.js";

interface Told {
  readonly seq: number;
  readonly data: JsonObject;
}

/** Processes that take another secret, or have one of their own, tell the same policy again: a few times in a row. */
const IN_A_ROW = 50;

/** $1 sequence number, $2 events. */
const UP_TO = `
SELECT seq, body FROM operation_events WHERE subject = 'policy' AND seq <= $1::int ORDER BY seq DESC LIMIT $2::int`;

/** Newest first: this event and those before it that tell of the same policy, with no other, and no gap, between them. */
async function toldInARow(on: SqlRunner, seq: number): Promise<readonly Told[]> {
  const rows = await on.sql<{ seq: number; body: string }>("ledger.policy_in_a_row", UP_TO, [seq, IN_A_ROW]);
  const told = rows.map(({ seq: at, body }) => ({ seq: at, data: dataIn(body) }));
  const other = told.findIndex(
    ({ seq: at, data }, index) => at !== seq - index || data["policy"] !== told[0]?.data["policy"],
  );
  return other < 0 ? told : told.slice(0, other);
}

/**
 * Whether a process with a secret that we know put the policy in force that this event tells of. It need not have told it last: what
 * another told again since is the same policy.
 */
export async function isPolicyOurs(
  on: SqlRunner,
  seals: Seals,
  last: { readonly body: string; readonly seq: number },
): Promise<boolean> {
  const data = dataIn(last.body);
  if (policyHolds(seals, data, last.seq)) return true;
  if (typeof data["policy"] !== "string") return false;
  return (await toldInARow(on, last.seq)).some((one) => policyHolds(seals, one.data, one.seq));
}

/**
 * Whether the log says, up to this event, that this policy with this text is in force, and a process with our own secret said so. What
 * only others said is said again: their secret may be taken away. What we said already is not, whoever spoke since, or two processes
 * would answer each other at every start.
 */
export async function isToldByUs(
  on: SqlRunner,
  seals: Seals,
  { policy, text, seq }: { policy: string; text: string; seq: number },
): Promise<boolean> {
  const told = await toldInARow(on, seq);
  return told.some(
    ({ seq: at, data }) =>
      data["policy"] === policy && data["seal"] === sealPolicy(seals, { policy, text, seq: at }),
  );
}
