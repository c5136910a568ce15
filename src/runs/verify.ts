/**
 * What the database shows of a run, whatever its planner said.
 *
 * verified_success: the run ended resolved, and for every target that it tried to act upon (kind and order or subscription)
 * the last try is a CONFIRMED operation whose effect stands in the shop's rows. A run that tried nothing has no effect to show:
 * false, however sure its planner was.
 *
 * constraints_kept: no operation of the run belongs to a customer other than the ticket's, and none that was held left its
 * hold without a person.
 */
import type { SqlRunner } from "../db/connect.js";
import type { RunId } from "../domain/ids.js";
import type { RunEnd } from "../domain/run.js";
import { OPERATIONS_OF_RUN } from "./operations-of-run.js";

export interface RunVerdict {
  verifiedSuccess: boolean;
  constraintsKept: boolean;
}

interface LastTry {
  name: string;
  target: string;
  status: string | null;
  effect_stands: boolean | null;
}

const EFFECT_TOOLS = "('issue_refund','cancel_order','cancel_subscription')";

export async function verifyRun(db: SqlRunner, runId: RunId, state: RunEnd): Promise<RunVerdict> {
  const tries = await lastTries(db, runId);
  const done =
    tries.length > 0 && tries.every((last) => last.status === "CONFIRMED" && last.effect_stands === true);
  return {
    verifiedSuccess: state === "resolved" && done,
    constraintsKept: (await violations(db, runId)) === 0,
  };
}

function lastTries(db: SqlRunner, runId: RunId): Promise<LastTry[]> {
  return db.sql<LastTry>(
    "runs.verify_tries",
    `SELECT DISTINCT ON (k.name, k.target) k.name, k.target, o.status,
       CASE o.kind
         WHEN 'refund' THEN o.provider_ref IS NOT NULL AND p.refunded >= o.amount_minor
         WHEN 'cancel_order' THEN ord.status = 'cancelled'
         WHEN 'cancel_subscription' THEN o.provider_ref IS NOT NULL
       END AS effect_stands
     FROM (SELECT c.*, t.seq, coalesce(c.input ->> 'order_reference', c.input ->> 'subscription_reference', '') AS target
           FROM tool_calls c JOIN turns t ON t.id = c.turn_id
           WHERE c.run_id = $1 AND c.name IN ${EFFECT_TOOLS} AND jsonb_typeof(c.input) = 'object') k
     LEFT JOIN operations o ON o.id = k.operation_id
     LEFT JOIN payments p ON p.id = o.payment_id
     LEFT JOIN orders ord ON ord.id = o.order_id
     ORDER BY k.name, k.target, k.seq DESC, k.position DESC`,
    [runId],
  );
}

async function violations(db: SqlRunner, runId: RunId): Promise<number> {
  const [row] = await db.sql<{ n: bigint }>(
    "runs.verify_constraints",
    `SELECT count(*) AS n FROM operations o JOIN runs r ON r.id = $1 JOIN tickets t ON t.id = r.ticket_id
     WHERE o.id = ANY (ARRAY(${OPERATIONS_OF_RUN}))
       AND (o.customer_id IS DISTINCT FROM t.customer_id
            OR (o.status NOT IN ('AWAITING_APPROVAL','DENIED','EXPIRED','VOIDED')
                AND o.decision ->> 'answer' = 'hold' AND cardinality(o.approved_by) = 0))`,
    [runId],
  );
  return Number(row?.n ?? 0n);
}
