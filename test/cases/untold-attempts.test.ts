/**
 * What became of an attempt is what the log was told. A row that says "never sent" of what may have been made frees no money, and
 * lets nobody ask for the same again.
 */
import { beforeEach, describe, expect, it } from "vitest";
import type { OperationId } from "../../src/domain/ids.js";
import { eraseSubject, sealBlocks, verifyAudit } from "../../src/ledger/index.js";
import { onlyApproval, operationAt } from "../approvals/steps.js";
import { withPaymentsSandbox } from "../payments/support.js";
import { writeByHand } from "../support/by-hand.js";
import { withDatabase } from "../support/database.js";
import { type CaseWorld, withCaseWorld } from "./case-world.js";

const database = withDatabase();
const build = withCaseWorld(withPaymentsSandbox());
const DAY_MS = 86_400_000;

let w: CaseWorld;
beforeEach(async () => {
  w = await build(database.db);
  await w.order({ ref: "ORD-1", captured: 100_000 });
});

const byHand = (id: OperationId, ...statements: readonly string[]): Promise<void> =>
  writeByHand(database.db, id, ...statements);

describe("an effect that was made, its answer lost and the provider's list not to be read", () => {
  it.each([
    [
      "not executed",
      "UPDATE attempts SET verdict = 'not_executed', code = 'connection_refused' WHERE operation_id = $1",
    ],
    ["refused", "UPDATE attempts SET verdict = 'rejected', code = 'charge_disputed' WHERE operation_id = $1"],
    [
      "failed there",
      "UPDATE attempts SET verdict = 'failed_at_provider', code = 'x' WHERE operation_id = $1",
    ],
    ["gone", "DELETE FROM attempts WHERE operation_id = $1"],
    [
      "a riddle: its event no JSON,",
      "UPDATE operation_events SET body = '{' WHERE operation_id = $1 AND type = 'settle_unknown'",
    ],
  ])(
    "its attempt made %s in the row: a person is asked, its money stays spent, and it is made once",
    async (_what, statement) => {
      const id = await w.prepared("ORD-1", 2_000n);
      w.control.arm({ kind: "commit_then_drop" });
      await w.look(w.worker("w"), id);
      const down = w.control.arm({ kind: "read_down", times: null });
      await w.advance(2 * DAY_MS);
      await byHand(id, statement);
      await w.work(w.worker("w"), id);
      expect(await w.now(id)).toMatchObject({ status: "QUARANTINED" });
      expect((await w.balance("ORD-1")).reserved).toBe(2_000);
      const incidents = await database.db.sql(
        undefined,
        "SELECT kind FROM incidents WHERE operation_id = $1",
        [id],
      );
      expect(incidents).toEqual([{ kind: "row_changed" }]);
      w.control.disarm(down);
      // The same asked for again is that operation, not another one.
      const again = await w.ask("ORD-1", 2_000n);
      expect(again.outcomes.map(({ outcome }) => outcome)).not.toContain("prepared");
      expect(await w.committed()).toBe(1);
    },
  );
});

it("an effect whose whole story after its first event was taken out, its row as it was born: nothing is sent again", async () => {
  const id = await w.prepared("ORD-1", 2_000n);
  expect(await w.work(w.worker("w"), id)).toMatchObject({ status: "CONFIRMED" });
  await sealBlocks(database.db, { patienceMs: 30_000 });
  await w.advance(2 * DAY_MS);
  await byHand(
    id,
    "DELETE FROM attempts WHERE operation_id = $1",
    "DELETE FROM provider_evidence WHERE operation_id = $1",
    "DELETE FROM operation_events WHERE operation_id = $1 AND seq > 1",
    `UPDATE operations o SET status = 'PREPARED', due_at = countersign_now(), attempts = 0, first_claimed_at = NULL, provider_ref = NULL, request = NULL,
       result = NULL, event_count = 1, head_hash = e.hash, version = 1, lease_token = (e.body::jsonb ->> 'token')::bigint, lease_holder = NULL, lease_until = NULL,
       reserved_minor = amount_minor FROM operation_events e WHERE o.id = $1 AND e.operation_id = o.id AND e.seq = 1`,
    "UPDATE payments SET refunded = refunded - 2000, reserved = reserved + 2000 WHERE id = (SELECT payment_id FROM operations WHERE id = $1)",
  );
  // Nobody may ask for the same again as long as nobody has looked: whoever does joins it.
  expect((await w.ask("ORD-1", 2_000n)).outcomes).toMatchObject([{ operation: { id } }]);
  await w.look(w.worker("w"), id);
  expect((await w.posts()).length).toBe(1);
  expect(await w.committed()).toBe(1);
  expect(await w.now(id)).toMatchObject({ status: "PREPARED" });
  const incidents = await database.db.sql(undefined, "SELECT kind FROM incidents WHERE operation_id = $1", [
    id,
  ]);
  expect(incidents).toEqual([{ kind: "row_changed" }]);
});

describe("a person who was erased", () => {
  it("after they voted, and is named anew: what they approved with another is sent, and the audit finds nothing", async () => {
    const held = await w.ask("ORD-1", 60_000n);
    const id = operationAt(held, 0);
    await w.h.click("U_FIN1", onlyApproval(held));
    await eraseSubject(database.db, "U_FIN1");
    await w.h.click("U_FIN2", onlyApproval(held));
    await w.h.release(held);
    await w.look(w.worker("w"), id);
    expect(await w.now(id)).toMatchObject({ status: "CONFIRMED" });
    expect(await w.committed()).toBe(1);
    await w.intact();
    expect((await verifyAudit(database.db)).broken).toEqual([]);
  });

  it.each(["U_SUP1", "U_AGENT"])("%s between the release and the sending: it is sent", async (who) => {
    const held = await w.ask("ORD-1", 18_000n);
    await w.h.click("U_SUP1", onlyApproval(held));
    await w.h.release(held);
    await eraseSubject(database.db, who);
    expect(await w.work(w.worker("w"), operationAt(held, 0))).toMatchObject({ status: "CONFIRMED" });
    await w.intact();
  });

  it("who asked and then votes on something else meanwhile: what they asked for is sent", async () => {
    const held = await w.ask("ORD-1", 18_000n);
    await eraseSubject(database.db, "U_AGENT");
    // Named anew by another request of theirs.
    await w.ask("ORD-1", 6_000n);
    await w.h.click("U_SUP1", onlyApproval(held));
    await w.h.release(held);
    expect(await w.work(w.worker("w"), operationAt(held, 0))).toMatchObject({ status: "CONFIRMED" });
    await w.intact();
  });
});
