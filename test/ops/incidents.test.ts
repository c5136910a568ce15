import { beforeEach, describe, expect, it } from "vitest";
import { openIncident } from "../../src/ledger/index.js";
import { withPaymentsSandbox } from "../payments/support.js";
import { withDatabase } from "../support/database.js";
import { type OpsWorld, withOpsWorld } from "./ops-world.js";

const database = withDatabase();
const build = withOpsWorld(withPaymentsSandbox());
let w: OpsWorld;

beforeEach(async () => {
  w = await build(database.db);
});

const found = async (key: string): Promise<string> =>
  (
    await w.h.db.tx((tx) =>
      openIncident(tx, w.dispatch, {
        kind: "orphan_effect",
        dedupeKey: key,
        operationId: null,
        paymentId: null,
        detail: { ref: key },
      }),
    )
  ).id;

const list = () => w.ops.incidents({ userId: "U_ONC1" });

describe("incidents", () => {
  it("open ones are listed, newest first, and page", async () => {
    const [first, second, third] = [await found("a"), await found("b"), await found("c")];
    const page = await w.ops.incidents({ userId: "U_ONC1", limit: 2 });
    if (page.outcome !== "incidents") throw new Error(page.outcome);
    expect(page.incidents.map(({ id }) => id)).toEqual([third, second]);
    expect(await w.ops.incidents({ userId: "U_ONC1", cursor: page.next })).toMatchObject({
      incidents: [{ id: first, kind: "orphan_effect", status: "open" }],
      next: null,
    });
  });

  it("one is closed once, with a reason, by name; the second hears who was first", async () => {
    const id = await found("a");
    const both = await Promise.all(
      ["U_ONC1", "U_ONC2"].map((userId) =>
        w.ops.closeIncident({ ref: id, userId, reason: `seen by ${userId}` }),
      ),
    );
    expect(both.map(({ outcome }) => outcome).toSorted()).toEqual(["already", "closed"]);
    const [row] = await w.h.db.sql<{ by: string; reason: string }>(
      undefined,
      "SELECT closed_by AS by, close_reason AS reason FROM incidents WHERE status = 'closed' AND closed_at IS NOT NULL",
    );
    expect(row?.reason).toBe(`seen by ${row?.by}`);
    expect(both).toContainEqual({
      outcome: "already",
      by: row?.by,
      at: expect.any(Date),
      reason: row?.reason,
    });
    expect(w.h.shown.ops.map(({ message }) => message)).toEqual([
      { type: "incident_closed", incidentId: id, kind: "orphan_effect", by: row?.by, reason: row?.reason },
    ]);
    expect(await list()).toMatchObject({ incidents: [] });
    expect(await w.ops.openClosing({ userId: "U_ONC1", ref: id })).toMatchObject({ outcome: "already" });
  });

  it("is named by the beginning of its id; what names none or several gets a sentence", async () => {
    const id = await found("a");
    await found("b");
    const form = (ref: string) => w.ops.openClosing({ userId: "U_ONC1", ref });
    expect(await form(id.slice(0, 34))).toMatchObject({ outcome: "form", incident: { id } });
    expect(await form(id.slice(4))).toMatchObject({ outcome: "form", incident: { id } });
    expect(await form(id.slice(0, 10))).toMatchObject({
      outcome: "unresolved",
      suggestions: expect.arrayContaining([
        expect.objectContaining({ incident: expect.objectContaining({ id, kind: "orphan_effect" }) }),
      ]),
    });
    for (const bad of ["inc_nope", "op_0192", "inc_00000000000000000000000000000000", "inc_1"]) {
      expect(await form(bad)).toMatchObject({
        outcome: "unresolved",
        sentence: expect.stringMatching(new RegExp(`“${bad}”.*/ops incidents lists the open ones\\.$`, "u")),
      });
    }
  });

  it("a reason is needed, and the on-call role", async () => {
    const id = await found("a");
    expect(await w.ops.closeIncident({ ref: id, userId: "U_ONC1", reason: " " })).toMatchObject({
      outcome: "invalid",
      field: "reason",
    });
    for (const outcome of [
      await w.ops.closeIncident({ ref: id, userId: "U_SUP1", reason: "r" }),
      await w.ops.openClosing({ ref: id, userId: "U_SUP1" }),
      await w.ops.incidents({ userId: "U_SUP1" }),
    ]) {
      expect(outcome).toMatchObject({ outcome: "refused", reason: "not_in_role" });
    }
    expect(await list()).toMatchObject({ incidents: [{ id }] });
  });
});
