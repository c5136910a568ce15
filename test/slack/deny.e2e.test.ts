/** Deny and Undo on approval cards, through the real Bolt app. */
import { describe, expect, test } from "vitest";
import type { MessageView } from "../../src/sandbox/slack/index.js";
import { waitFor } from "../support/wait.js";
import { buttonsOf, withCards } from "./support/cards.js";
import { hold, moveApproval, moveOperation } from "./support/held.js";
import { readable } from "./support/see.js";
import type { World } from "./support/world.js";

const { database, start, cardIn, click, votes, says, inThread } = withCards();

describe("Deny", () => {
  const deny = async (w: World, as: string, card: MessageView, values: Record<string, string>) => {
    await click(w, as, card, "Deny");
    const modal = await waitFor(() => w.sandbox.control.modals(as)[0]);
    return w.sandbox.control.submitView({ as, viewId: modal.id, values });
  };

  test("opens a form; the note and a smaller amount stand on every card, and the operation is denied", async () => {
    const w = await start();
    const { held, ts } = await inThread(w);
    const card = await cardIn(w);
    expect(
      await deny(w, "U_SUP1", card, { note: "<!here> ask *once* more", smaller: "£120.50" }),
    ).toMatchObject({ ok: true });
    await says(w, "U_SUP1", "Denied: Refund of £180.00 GBP on order ORD-10042. Nothing is sent.");
    const final = await waitFor(() => {
      const found = w.sandbox.control
        .messages("U_SUP1", "C_APPR")
        .concat(w.sandbox.control.messages("U_SUP1", "C_TICK", { threadTs: ts }))
        .filter((one) => readable(one).includes("*Denied* by <@U_SUP1>"));
      return found.length === 2 ? found : null;
    });
    expect(readable(final[0] as MessageView)).toBe(readable(final[1] as MessageView));
    expect(readable(final[0] as MessageView)).toContain("<!here> ask *once* more");
    expect(readable(final[0] as MessageView)).toContain("Suggested instead: £120.50 GBP");
    expect(final.some((one) => one.mentionsMe)).toBe(false);
    expect(final.flatMap(buttonsOf)).toEqual([]);
    expect(
      await database.db.sql(
        undefined,
        "SELECT o.status, a.state, a.suggested_minor FROM approvals a JOIN operations o ON o.id = a.operation_id WHERE a.id = $1",
        [held.approvalId],
      ),
    ).toEqual([{ status: "DENIED", state: "DENIED", suggested_minor: 12_050n }]);
  });

  test("without a note, or with an amount that is none, keeps the form open", async () => {
    const w = await start();
    await hold(w);
    const card = await cardIn(w);
    expect(await deny(w, "U_SUP1", card, { note: "\u200b " })).toMatchObject({ ok: false });
    const modal = w.sandbox.control.modals("U_SUP1")[0];
    const submit = (smaller: string) =>
      w.sandbox.control.submitView({
        as: "U_SUP1",
        viewId: modal?.id ?? "",
        values: { note: "too much", smaller },
      });
    for (const amount of ["a bit", "1e3", "-5", "12.505", "180.00", "200", "0"]) {
      expect(await submit(amount)).toMatchObject({
        ok: false,
        error: "view_errors",
        errors: { smaller: expect.any(String) },
      });
    }
    expect(await votes()).toEqual([]);
    expect(await submit("179.99")).toMatchObject({ ok: true });
  });

  test("after somebody else decided is told so, in the form that was open and at the button", async () => {
    const w = await start();
    await hold(w);
    const card = await cardIn(w);
    await click(w, "U_SUP2", card, "Deny");
    const modal = await waitFor(() => w.sandbox.control.modals("U_SUP2")[0]);
    expect(await deny(w, "U_SUP1", card, { note: "no" })).toMatchObject({ ok: true });
    const late = await w.sandbox.control.submitView({
      as: "U_SUP2",
      viewId: modal.id,
      values: { note: "me too" },
    });
    expect(late).toMatchObject({
      ok: false,
      error: "view_errors",
      errors: { note: expect.stringMatching(/^Already denied by sam, /) },
    });
  });

  test("wins over a complete approval that has not been sent, and says that it did", async () => {
    const w = await start();
    await hold(w);
    const card = await cardIn(w);
    await click(w, "U_SUP1", card, "Approve");
    await waitFor(() =>
      w.sandbox.control.messages("U_SUP1", "C_APPR").every((one) => buttonsOf(one).length === 0),
    );
    await w.sandbox.control.openHome({ as: "U_SUP2" });
    const home = await waitFor(() => {
      const view = w.sandbox.control.home("U_SUP2");
      return view.published ? view : null;
    });
    await w.sandbox.control.click({
      as: "U_SUP2",
      at: { viewId: home.viewId ?? "" },
      label: "Deny after all",
    });
    const modal = await waitFor(() => w.sandbox.control.modals("U_SUP2")[0]);
    expect(
      await w.sandbox.control.submitView({ as: "U_SUP2", viewId: modal.id, values: { note: "wait" } }),
    ).toMatchObject({ ok: true });
    await waitFor(() =>
      readable({ text: "", blocks: w.sandbox.control.home("U_SUP2").blocks }).includes("Denied in time"),
    );
  });

  test("and Approve at the same moment, twenty times, are one decision each, told alike to both", async () => {
    const w = await start({ sandbox: { rateLimits: false } });
    for (let round = 0; round < 20; round += 1) {
      const held = await hold(w);
      const both = await Promise.all([
        w.ctx.useCases.decide({
          approvalId: held.approvalId,
          cardVersion: 1,
          userId: "U_SUP1",
          verdict: "approve",
        }),
        w.ctx.useCases.decide({
          approvalId: held.approvalId,
          cardVersion: 1,
          userId: "U_SUP2",
          verdict: "deny",
          note: "no",
        }),
      ]);
      const [row] = await database.db.sql<{ state: string }>(
        undefined,
        "SELECT state FROM approvals WHERE id = $1",
        [held.approvalId],
      );
      expect(row?.state).toBe("DENIED");
      expect(both[1]?.outcome).toBe("denied");
    }
  });
});

describe("Undo", () => {
  test("stands on the card while an approved refund cools off, and takes it back", async () => {
    const w = await start();
    await coolingOff(w, await hold(w));
    const cooling = await waitFor(() =>
      w.sandbox.control
        .messages("U_SUP1", "C_APPR")
        .find((one) => buttonsOf(one).includes("Undo approval of £180.00 GBP")),
    );
    expect(readable(cooling)).toContain("Until then it can be undone");
    await click(w, "U_SUP2", cooling, "Undo");
    await says(w, "U_SUP2", "Taken back: Refund of £180.00 GBP");
    await taken();
  });

  test("stands in the App Home of everybody who may use it, and takes it back there", async () => {
    const w = await start();
    await coolingOff(w, await hold(w));
    await w.sandbox.control.openHome({ as: "U_SUP2" });
    const home = await waitFor(() => {
      const view = w.sandbox.control.home("U_SUP2");
      return view.published ? view : null;
    });
    const text = readable({ text: "", blocks: home.blocks });
    expect(text).toContain("Approved, not sent yet");
    expect(text).toContain("Until then it can be undone");
    await w.sandbox.control.click({
      as: "U_SUP2",
      at: { viewId: home.viewId ?? "" },
      label: "Undo approval",
    });
    await taken();
    await w.sandbox.control.openHome({ as: "U_AGENT2" });
    const others = await waitFor(() => {
      const view = w.sandbox.control.home("U_AGENT2");
      return view.published ? view : null;
    });
    expect(readable({ text: "", blocks: others.blocks })).not.toContain("Undo");
  });

  const taken = () =>
    waitFor(
      async () =>
        (await database.db.sql(undefined, "SELECT 1 FROM operations WHERE status = 'DENIED'")).length === 1,
    );

  async function coolingOff(w: World, held: Awaited<ReturnType<typeof hold>>): Promise<void> {
    const card = await cardIn(w);
    await click(w, "U_SUP1", card, "Approve");
    await waitFor(async () => (await votes()).length === 1);
    await moveApproval(w, held, "RELEASED");
    await database.db.sql(
      undefined,
      `UPDATE operations SET not_before = countersign_now() + interval '10 minutes', reserved_minor = amount_minor,
         due_at = countersign_now() + interval '10 minutes' WHERE id = $1`,
      [held.operationId],
    );
    await database.db.sql(
      undefined,
      "UPDATE payments SET reserved = 18000 WHERE payment_intent = 'pi_ORD-10042'",
    );
    await moveOperation(w, held, ["PREPARED"]);
  }
});
