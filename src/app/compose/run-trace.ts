/** The whole story of a run in one document: its trace, and of each operation every event and every attempt's verdict. */
import type { Db } from "../../db/connect.js";
import type { RunId } from "../../domain/ids.js";
import type { AttemptRow, OperationEvent } from "../../ledger/index.js";
import { attemptsOf, eventsOf } from "../../ledger/index.js";
import { type Trace, type TracedOperation, traceRun } from "../../runs/index.js";

/** How one try ended: what was heard, and what that proves. */
export type TracedAttempt = Pick<
  AttemptRow,
  "number" | "startedAt" | "finishedAt" | "verdict" | "code" | "httpStatus" | "requestId" | "providerRef"
>;

/** The fields of `ops events --json`, without the hash. */
export type TracedEvent = Pick<
  OperationEvent,
  "seq" | "at" | "type" | "from" | "to" | "actor" | "attempt"
> & {
  evidence: OperationEvent["data"];
};

export interface FullTrace extends Trace {
  operations: readonly (TracedOperation & {
    events: readonly TracedEvent[];
    attemptVerdicts: readonly TracedAttempt[];
  })[];
}

/** As `countersign trace` and the stories write it; all of one moment. Null when there is no such run. */
export function fullTrace(db: Db, runId: RunId): Promise<FullTrace | null> {
  return db.tx(
    async (tx) => {
      const trace = await traceRun(tx, runId);
      if (trace === null) return null;
      const operations: FullTrace["operations"][number][] = [];
      for (const operation of trace.operations) {
        operations.push({
          ...operation,
          events: (await eventsOf(tx, operation.id)).map(tracedEvent),
          attemptVerdicts: (await attemptsOf(tx, operation.id)).map(tracedAttempt),
        });
      }
      return { ...trace, operations };
    },
    { isolation: "repeatable read" },
  );
}

const tracedEvent = ({ seq, at, type, from, to, actor, attempt, data }: OperationEvent): TracedEvent => ({
  seq,
  at,
  type,
  from,
  to,
  actor,
  attempt,
  evidence: data,
});

const tracedAttempt = (row: AttemptRow): TracedAttempt => ({
  number: row.number,
  startedAt: row.startedAt,
  finishedAt: row.finishedAt,
  verdict: row.verdict,
  code: row.code,
  httpStatus: row.httpStatus,
  requestId: row.requestId,
  providerRef: row.providerRef,
});
