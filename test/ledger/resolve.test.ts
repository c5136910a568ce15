/** A person's evidenced decision: what it takes, who may not, and that one decision wins. */
import { describe, expect, test } from "vitest";
import type { Evidence } from "../../src/domain/evidence.js";
import type { Operation } from "../../src/domain/operation.js";
import * as ledger from "../../src/ledger/index.js";
import { withDatabase } from "../support/database.js";
import { effectFor, type LedgerWorld, putRun, refund } from "../support/ledger-world.js";
import { barrier } from "../support/wait.js";
import {
  decide,
  inState,
  intact,
  moneyOf,
  openShop,
  outcomes,
  parkedUnsent,
  passTime,
  prepare,
  REQUEST,
  reread,
  settle,
  taken,
} from "./scene.js";

const database = withDatabase({ poolSize: 12 });

function ask(
  ctx: LedgerWorld,
  operation: Operation,
  part: Partial<ledger.ResolveRequest> & Pick<ledger.ResolveRequest, "verb">,
): Promise<ledger.ResolveResult> {
  return ledger.resolve(ctx, {
    operationId: operation.id,
    expectedVersion: operation.version,
    by: "U_ONC1",
    reason: "looked in the dashboard",
    evidenceRef: "https://dashboard.example/re_1",
    probe: { says: "absent" },
    needsSecond: false,
    secondWithinMs: 3_600_000,
    ...part,
  });
}

const committed = (operation: Operation): Evidence => ({
  says: "committed",
  effect: effectFor(operation),
  postcondition: "holds",
});

describe("confirm", () => {
  test("with the provider's own effect ends it with that reference, by one person, from every open state", async () => {
    for (const state of ["OUTCOME_UNKNOWN", "RECONCILING", "QUARANTINED"] as const) {
      await database.reset();
      const ctx = await openShop(database.db);
      const operation = await inState(ctx, state);
      const result = await ask(ctx, operation, { verb: "confirm", probe: committed(operation) });
      expect(result).toMatchObject({
        outcome: "applied",
        operation: {
          status: "CONFIRMED",
          providerRef: effectFor(operation).ref,
          resolvedByPerson: true,
          result: { code: "confirmed_by_person" },
        },
      });
      expect(await moneyOf(ctx.db)).toMatchObject({ reserved: 0n, refunded: 2000n });
      expect((await ledger.eventsOf(ctx.db, operation.id)).at(-1)).toMatchObject({
        actor: "slack:U_ONC1",
        data: { verb: "confirm", reason: "looked in the dashboard" },
      });
      expect(ctx.notes).toContain("ops resolved");
      expect(await intact(ctx.db)).toEqual([]);
    }
  });

  test("takes the token from a reconciler, whose answer then changes nothing", async () => {
    const ctx = await openShop(database.db);
    const take = await taken(ctx, await inState(ctx, "OUTCOME_UNKNOWN"));
    await ask(ctx, take.operation, { verb: "confirm", probe: committed(take.operation) });
    expect(await decide(ctx, take, { do: "reject", code: "x", detail: "x" })).toMatchObject({
      settled: false,
      why: "fenced",
    });
    expect((await reread(ctx.db, take.operation)).status).toBe("CONFIRMED");
  });

  test("on a person's word alone only of what is parked, with the reference that they name", async () => {
    const ctx = await openShop(database.db);
    const unknown = await inState(ctx, "OUTCOME_UNKNOWN");
    expect(await ask(ctx, unknown, { verb: "confirm" })).toMatchObject({
      outcome: "not_safe",
      code: "nobody_can_know",
    });
    const take = await taken(ctx, unknown);
    const parked = await decide(ctx, take, { do: "quarantine", reason: "unknown_too_long", detail: "" });
    if (parked.operation === null) throw new Error("gone");
    expect(await ask(ctx, parked.operation, { verb: "confirm", evidenceRef: "seen: re_seen" })).toMatchObject(
      {
        outcome: "applied",
        operation: {
          providerRef: "re_seen",
          result: {
            code: "confirmed_unseen",
            detail:
              "Confirmed by on-call: re_seen. This rests on a person's word: the provider showed nothing of it.",
          },
        },
      },
    );
    expect((await ledger.eventsOf(ctx.db, unknown.id)).at(-1)?.data).toMatchObject({
      detail: "This rests on a person's word: the provider showed nothing of it.",
    });
  });

  test("with another reference than the provider shows is taken with that difference on record", async () => {
    const ctx = await openShop(database.db);
    const operation = await inState(ctx, "QUARANTINED");
    const { ref } = effectFor(operation);
    const given = {
      verb: "confirm",
      probe: committed(operation),
      evidenceRef: "re_of_another_order",
    } as const;
    const remark = `The evidence names another reference than the provider shows: ${ref}.`;
    expect(await ask(ctx, operation, given)).toMatchObject({
      outcome: "applied",
      operation: { providerRef: ref, result: { detail: `Confirmed by on-call: ${ref}. ${remark}` } },
    });
    expect((await ledger.eventsOf(ctx.db, operation.id)).at(-1)?.data).toMatchObject({ detail: remark });
    expect(await intact(ctx.db)).toEqual([]);
  });

  test("of several effects, or of one that nobody can attribute, says which one it means", async () => {
    for (const says of ["duplicate", "unattributed"] as const) {
      await database.reset();
      const ctx = await openShop(database.db);
      const operation = await inState(ctx, "QUARANTINED");
      const effect = effectFor(operation);
      const probe: Evidence = { says, effects: [effect, { ...effect, ref: `${effect.ref}9` }] };
      for (const evidenceRef of ["ticket 42", "re_other", `${effect.ref} or ${effect.ref}9`]) {
        expect(await ask(ctx, operation, { verb: "confirm", probe, evidenceRef })).toMatchObject({
          outcome: "not_safe",
          code: "names_none_shown",
        });
      }
      expect(await reread(ctx.db, operation)).toEqual(operation);
      const asked = await ask(ctx, operation, {
        verb: "confirm",
        probe,
        evidenceRef: `finance keeps ${effect.ref}9`,
        needsSecond: true,
      });
      if (asked.outcome !== "needs_second") throw new Error(asked.outcome);
      const agreed = await ledger.secondResolve(ctx, {
        resolutionId: asked.resolution.id,
        by: "U_ONC2",
        verdict: "agree",
        note: null,
        probe,
      });
      expect(agreed).toMatchObject({ outcome: "applied", operation: { providerRef: `${effect.ref}9` } });
      expect(await intact(ctx.db)).toEqual([]);
    }
  });

  test("against what the provider shows is refused", async () => {
    const ctx = await openShop(database.db);
    const operation = await inState(ctx, "QUARANTINED");
    const failed: Evidence = { says: "failed_at_provider", effect: effectFor(operation), code: "declined" };
    expect(await ask(ctx, operation, { verb: "confirm", probe: failed })).toMatchObject({
      outcome: "not_safe",
      code: "evidence_contradicts",
    });
    expect(await reread(ctx.db, operation)).toEqual(operation);
  });
});

describe("reject and retry", () => {
  test.each(["reject", "retry"] as const)(
    "%s needs a parked operation and two people where the contract knows no bound",
    async (verb) => {
      const ctx = await openShop(database.db);
      const unknown = await inState(ctx, "OUTCOME_UNKNOWN");
      expect(await ask(ctx, unknown, { verb })).toMatchObject({
        outcome: "not_safe",
        code: "may_still_commit",
      });
      const parked = await decide(ctx, await taken(ctx, unknown), {
        do: "quarantine",
        reason: "unknown_too_long",
        detail: "",
      });
      if (parked.operation === null) throw new Error("gone");
      const proposed = await ask(ctx, parked.operation, { verb });
      expect(proposed).toMatchObject({ outcome: "needs_second", resolution: { state: "proposed" } });
      expect((await reread(ctx.db, unknown)).status).toBe("QUARANTINED");
      expect(await moneyOf(ctx.db)).toMatchObject({ reserved: 2000n });
      if (proposed.outcome !== "needs_second") throw new Error(proposed.outcome);
      const second = {
        resolutionId: proposed.resolution.id,
        verdict: "agree",
        note: null,
        probe: { says: "absent" },
      } as const;
      expect(await ledger.secondResolve(ctx, { ...second, by: "U_ONC1" })).toMatchObject({
        outcome: "not_safe",
        code: "same_person",
      });
      const agreed = await ledger.secondResolve(ctx, { ...second, by: "U_ONC2" });
      expect(agreed).toMatchObject({ outcome: "applied", resolution: { secondBy: "U_ONC2" } });
      expect(await ledger.secondResolve(ctx, { ...second, by: "U_ONC2" })).toMatchObject({
        outcome: "overtaken",
      });
      expect(await intact(ctx.db)).toEqual([]);
    },
  );

  test("reject by one person once nothing can commit: the key stays closed, only a further occurrence may follow", async () => {
    const ctx = await openShop(database.db);
    const parked = await parkedUnsent(ctx);
    expect(await ask(ctx, parked, { verb: "reject" })).toMatchObject({
      outcome: "applied",
      operation: { status: "REJECTED", resolvedByPerson: true },
    });
    expect(await moneyOf(ctx.db)).toMatchObject({ reserved: 0n, refunded: 0n, counted: 0n });
    const [again] = await prepare(ctx, refund(await putRun(ctx.db), 2000n));
    expect(again).toMatchObject({ outcome: "same", operation: { id: parked.id } });
    expect(await intact(ctx.db)).toEqual([]);
  });

  test.each([
    ["reject", { says: "unknown", reason: "timeout" }, "nobody_can_know"],
    ["reject", "committed", "evidence_contradicts"],
    ["retry", "committed", "evidence_contradicts"],
    ["retry", "unattributed", "evidence_contradicts"],
  ] as const)("%s is refused while the provider says %o", async (verb, said, code) => {
    const ctx = await openShop(database.db);
    const operation = await inState(ctx, "QUARANTINED");
    const probe: Evidence =
      said === "committed"
        ? committed(operation)
        : said === "unattributed"
          ? { says: "unattributed", effects: [effectFor(operation, { operationId: null })] }
          : said;
    expect(await ask(ctx, operation, { verb, probe })).toMatchObject({ outcome: "not_safe", code });
    expect(await reread(ctx.db, operation)).toEqual(operation);
  });

  test("what the provider made differently is confirmed by nobody; two people close it, and the same effect is no news later", async () => {
    const ctx = await openShop(database.db);
    const operation = await inState(ctx, "QUARANTINED");
    const effect = effectFor(operation, { amountMinor: 1999n });
    const probe: Evidence = { says: "committed", effect, postcondition: "fails", differs: ["amount"] };
    expect(await ask(ctx, operation, { verb: "confirm", probe })).toMatchObject({ code: "not_as_asked" });
    expect(await ask(ctx, operation, { verb: "retry", probe })).toMatchObject({
      code: "evidence_contradicts",
    });
    const proposed = await ask(ctx, operation, { verb: "reject", probe });
    if (proposed.outcome !== "needs_second") throw new Error(proposed.outcome);
    const agreed = await ledger.secondResolve(ctx, {
      resolutionId: proposed.resolution.id,
      verdict: "agree",
      note: null,
      probe,
      by: "U_ONC2",
    });
    expect(agreed).toMatchObject({
      outcome: "applied",
      operation: {
        status: "REJECTED",
        providerRef: null,
        result: { code: "made_differently", providerRef: effect.ref },
      },
    });
    expect(await moneyOf(ctx.db)).toMatchObject({ reserved: 0n, refunded: 0n, counted: 0n });
    const again = {
      operationId: operation.id,
      actor: "system:webhook",
      detail: "it is listed",
      evidence: {
        operationId: operation.id,
        source: "webhook",
        providerRef: effect.ref,
        dedupeKey: "seen again",
        payload: {},
      },
    } as const;
    expect(await ledger.contradict(ctx, again)).toMatchObject({ moved: false });
    const other = { ...again, evidence: { ...again.evidence, providerRef: "re_other", dedupeKey: "other" } };
    expect(await ledger.contradict(ctx, other)).toMatchObject({
      moved: true,
      operation: { status: "QUARANTINED" },
    });
    expect(await intact(ctx.db)).toEqual([]);
  });

  test("retry past the key's life is refused by whoever asks", async () => {
    const ctx = await openShop(database.db);
    const operation = await inState(ctx, "QUARANTINED");
    await passTime(ctx.db, 86_400_000);
    expect(await ask(ctx, operation, { verb: "retry" })).toMatchObject({
      outcome: "not_safe",
      code: "key_expired",
    });
  });

  test("an authorised retry is sent once, under the same key, whoever else looks", async () => {
    const ctx = await openShop(database.db);
    const operation = await inState(ctx, "QUARANTINED");
    const proposed = await ask(ctx, operation, { verb: "retry" });
    if (proposed.outcome !== "needs_second") throw new Error(proposed.outcome);
    expect(await ledger.sendAuthorised(ctx, { operationId: operation.id, worker: "w" })).toMatchObject({
      claimed: false,
      why: "moved",
    });
    const cards = () => ctx.notes.filter((one) => one === "repost quarantine").length;
    const before = cards();
    await ledger.secondResolve(ctx, {
      resolutionId: proposed.resolution.id,
      by: "U_ONC2",
      verdict: "agree",
      note: null,
      probe: { says: "absent" },
    });
    expect(cards()).toBe(before);
    // Somebody joins meanwhile: that does not use the authority up.
    await prepare(ctx, { ...refund(await putRun(ctx.db, "U_OTHER"), 2000n), filers: ["U_OTHER"] });
    expect(await ledger.dueOperations(ctx.db, { limit: 5 })).toMatchObject([{ quarantine: "authorised" }]);
    const ready = barrier(6);
    const sends = await Promise.all(
      Array.from({ length: 6 }, async (_, index) => {
        await ready();
        return ledger.sendAuthorised(ctx, { operationId: operation.id, worker: `w${index}` });
      }),
    );
    const won = sends.filter(({ claimed: sent }) => sent);
    expect(won).toMatchObject([{ attempt: 2, request: REQUEST }]);
    const [claim] = won;
    if (claim?.claimed !== true) throw new Error("nobody sent");
    expect(claim.operation.idempotencyKey).toBe(operation.idempotencyKey);
    await settle(ctx, claim, outcomes.unknown());
    const parked = await decide(ctx, await taken(ctx, operation), {
      do: "quarantine",
      reason: "unknown_too_long",
      detail: "",
    });
    expect(parked.settled).toBe(true);
    expect(await ledger.sendAuthorised(ctx, { operationId: operation.id, worker: "w" })).toMatchObject({
      claimed: false,
    });
    expect(await intact(ctx.db)).toEqual([]);
  });
});

describe("two people at once", () => {
  test("confirm and reject of the same operation: one decision is carried out, the other is told", async () => {
    for (let round = 0; round < 15; round += 1) {
      await database.reset();
      const ctx = await openShop(database.db);
      const operation = await parkedUnsent(ctx);
      const ready = barrier(2);
      const results = await Promise.all(
        (["confirm", "reject"] as const).map(async (verb, index) => {
          await ready();
          return ask(ctx, operation, { verb, by: `U_ONC${index + 1}` });
        }),
      );
      expect(results.map(({ outcome }) => outcome).sort()).toEqual(["applied", "overtaken"]);
      expect(await intact(ctx.db)).toEqual([]);
    }
  });

  test("an open proposal is the only one; a proposal whose operation moved is overtaken; a no ends it", async () => {
    const ctx = await openShop(database.db);
    const operation = await inState(ctx, "QUARANTINED");
    const first = await ask(ctx, operation, { verb: "reject" });
    if (first.outcome !== "needs_second") throw new Error(first.outcome);
    expect(await ask(ctx, operation, { verb: "retry", by: "U_ONC2" })).toMatchObject({
      outcome: "overtaken",
      by: "U_ONC1",
    });
    const answer = {
      resolutionId: first.resolution.id,
      by: "U_ONC2",
      note: "no",
      probe: { says: "absent" },
    } as const;
    expect(await ledger.secondResolve(ctx, { ...answer, verdict: "disagree" })).toMatchObject({
      outcome: "disagreed",
      resolution: { state: "disagreed", secondNote: "no" },
    });
    const second = await ask(ctx, await reread(ctx.db, operation), { verb: "reject" });
    if (second.outcome !== "needs_second") throw new Error(second.outcome);
    await decide(ctx, await taken(ctx, operation), { do: "confirm", effect: effectFor(operation) });
    expect(
      await ledger.secondResolve(ctx, { ...answer, resolutionId: second.resolution.id, verdict: "agree" }),
    ).toMatchObject({ outcome: "overtaken" });
    expect(await ledger.getResolution(ctx.db, second.resolution.id)).toMatchObject({ state: "superseded" });
    expect((await reread(ctx.db, operation)).status).toBe("CONFIRMED");
  });

  test("nobody decides about what they filed, as first or second", async () => {
    const ctx = await openShop(database.db);
    const operation = await inState(ctx, "QUARANTINED");
    expect(await ask(ctx, operation, { verb: "reject", by: "U_AGENT" })).toMatchObject({
      outcome: "not_safe",
      code: "filed_it_themselves",
    });
    const proposed = await ask(ctx, operation, { verb: "reject" });
    if (proposed.outcome !== "needs_second") throw new Error(proposed.outcome);
    const second = {
      resolutionId: proposed.resolution.id,
      verdict: "agree",
      note: null,
      probe: { says: "absent" },
    } as const;
    expect(await ledger.secondResolve(ctx, { ...second, by: "U_AGENT" })).toMatchObject({
      outcome: "not_safe",
      code: "filed_it_themselves",
    });
  });

  test("an ended operation is resolved by nobody; contradicting evidence opens it again", async () => {
    const ctx = await openShop(database.db);
    const operation = await inState(ctx, "CONFIRMED");
    expect(await ask(ctx, operation, { verb: "reject" })).toMatchObject({
      outcome: "not_safe",
      code: "wrong_state",
    });
    const reopened = await ledger.contradict(ctx, {
      operationId: operation.id,
      actor: "slack:U_ONC1",
      detail: "wrong click",
      evidence: {
        operationId: operation.id,
        source: "person",
        providerRef: null,
        dedupeKey: "reopen:1",
        payload: { says: "reopened" },
      },
    });
    expect(reopened).toMatchObject({ moved: true, operation: { status: "QUARANTINED", result: null } });
    expect(await moneyOf(ctx.db)).toMatchObject({ reserved: 2000n, refunded: 0n, counted: 2000n });
    expect(ctx.notes).toContain("repost quarantine");
    expect(await intact(ctx.db)).toEqual([]);
  });
});

describe("a proposal that was written by hand", () => {
  test.each([
    ["by nobody that the log knows", "id = 'res_forged'"],
    ["in another person's name", "by = 'U_ONC3'"],
    ["with another verb", "verb = 'retry'"],
    ["with another evidence", "evidence_ref = 're_other'"],
    ["with another reason", "reason = 'a better one'"],
  ])("%s is no decision that a second person could agree to", async (_how, change) => {
    const ctx = await openShop(database.db);
    const parked = await inState(ctx, "QUARANTINED");
    const proposed = await ask(ctx, parked, { verb: "reject", needsSecond: true });
    if (proposed.outcome !== "needs_second") throw new Error(proposed.outcome);
    const rows = await ctx.db.sql<{ id: string }>(undefined, `UPDATE resolutions SET ${change} RETURNING id`);
    const before = await reread(ctx.db, parked);
    const agreed = await ledger.secondResolve(ctx, {
      resolutionId: rows[0]?.id ?? "",
      by: "U_ONC2",
      verdict: "agree",
      note: null,
      probe: { says: "absent" },
    });
    expect(agreed).toMatchObject({ outcome: "not_safe", code: "not_asked" });
    expect(await reread(ctx.db, parked)).toEqual(before);
    expect(await moneyOf(ctx.db)).toMatchObject({ reserved: 2000n });
    const { rows: open } = await ledger.listIncidents(ctx.db, {});
    expect(open).toMatchObject([{ kind: "row_changed", operationId: parked.id }]);
    const [row] = await ctx.db.sql<{ state: string }>(undefined, "SELECT state FROM resolutions");
    expect(row).toEqual({ state: "refused" });
  });
});
