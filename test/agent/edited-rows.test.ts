/** Rows of a run that were changed by hand: nothing leaves twice, and nothing that was not allowed or approved. */
import { describe, expect, test } from "vitest";
import { byTurn, says, uses } from "../support/messages-stub.js";
import { look, loopSuite, refund } from "./support/suite.js";

const suite = loopSuite();

const script = (order: string, minor: number) =>
  suite.stub.script(
    byTurn(
      () => uses(look(order)),
      () => uses(refund(order, minor)),
      () => says("Done."),
    ),
  );

const amounts = async () => (await suite.payments.sandbox.control.effects()).map(({ amount }) => amount);

describe("a run that has ended with its refund", () => {
  async function ended() {
    const world = await suite.start();
    script("ORD-1001", 2_000);
    const { runId } = await world.fileConfirmed("ORD-1001 came broken, $20 back please");
    await world.pump();
    expect(await suite.committed()).toBe(1);
    return { world, runId };
  }

  test.each(["recorded", "held", "released"])("is live again with its turn %s", async (state) => {
    const { world, runId } = await ended();
    await world.db.sql(
      undefined,
      `WITH turn AS (UPDATE turns SET state = $2 WHERE run_id = $1 AND seq = 2 RETURNING id),
        later AS (UPDATE turns SET seq = -seq WHERE run_id = $1 AND seq > 2),
        call AS (UPDATE tool_calls SET state = CASE $2 WHEN 'recorded' THEN 'proposed' WHEN 'held' THEN 'held' ELSE 'ready' END,
          result = NULL, result_json = NULL, is_error = NULL,
          operation_id = CASE WHEN $2 = 'recorded' THEN NULL ELSE operation_id END
          WHERE turn_id IN (SELECT id FROM turns WHERE run_id = $1 AND seq = 2))
       UPDATE runs SET state = 'queued', end_code = NULL, end_detail = NULL, due_at = countersign_now(), steps_used = 0 WHERE id = $1`,
      [runId, state],
    );
    await world.pump();
    expect(await amounts()).toEqual([2_000]);
    expect(await world.operations()).toHaveLength(1);
  });
});

describe("a held refund", () => {
  async function held() {
    const world = await suite.start();
    script("ORD-10042", 18_000);
    const { runId, ticketId } = await world.fileConfirmed("ORD-10042 arrived torn, £180.00 back");
    await world.pump();
    const [approval] = await world.pending();
    if (approval === undefined) throw new Error("nothing is pending");
    return { world, runId, ticketId, approval };
  }

  test("is not released by its turn's state alone", async () => {
    const { world, runId } = await held();
    await world.db.sql(
      undefined,
      "UPDATE turns SET state = 'released' WHERE run_id = $1 AND state = 'held'",
      [runId],
    );
    await world.db.sql(
      undefined,
      "UPDATE runs SET state = 'queued', due_at = countersign_now() WHERE id = $1",
      [runId],
    );
    await world.pump();
    expect(await amounts()).toEqual([]);
    expect(await world.pending()).toHaveLength(1);
  });

  test("is what was approved, whatever its call's input says since", async () => {
    const { world, runId, approval } = await held();
    await world.db.sql(
      undefined,
      `UPDATE tool_calls SET input = input || '{"amount_minor": 17000}',
         decision_detail = jsonb_set(decision_detail, '{proposal,intent,amountMinor}', '"17000"') WHERE run_id = $1 AND state = 'held'`,
      [runId],
    );
    await world.click("U_SUP1", approval);
    await world.pump();
    expect(await amounts()).toEqual([18_000]);
  });

  test("is not its filer's to approve when its run is moved to somebody else's ticket", async () => {
    const { world, runId, approval } = await held();
    const { ticket } = await world.file("something else entirely", { filer: "U_SUP2" });
    await world.db.sql(undefined, "UPDATE runs SET state = 'cancelled', due_at = NULL WHERE ticket_id = $1", [
      ticket.id,
    ]);
    await world.db.sql(
      undefined,
      "UPDATE runs SET ticket_id = $2, due_at = countersign_now() WHERE id = $1",
      [runId, ticket.id],
    );
    const outcome = await world.click("U_AGENT", approval);
    expect(outcome.outcome).toBe("refused");
    await world.pump();
    expect(await amounts()).toEqual([]);
  });

  test("is told to on-call when it was approved and its call is about something else", async () => {
    const { world, runId, approval } = await held();
    await world.db.sql(
      undefined,
      `UPDATE tool_calls SET operation_id = NULL, state = 'ready',
         decision_detail = jsonb_set(decision_detail, '{proposal,intent,amountMinor}', '"4000"') WHERE run_id = $1 AND state = 'held'`,
      [runId],
    );
    await world.click("U_SUP1", approval);
    await world.pump();
    expect(await amounts()).toEqual([4_000]);
    const incidents = await world.db.sql<{ kind: string; operation_id: string }>(
      undefined,
      "SELECT kind, operation_id FROM incidents WHERE status = 'open'",
    );
    expect(incidents).toEqual([{ kind: "row_changed", operation_id: approval.operationId }]);
  });
});
