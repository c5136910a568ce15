/** The card of a finding: what was found, what it means now, and what whoever reads it does first. */
import { describe, expect, test } from "vitest";
import { INCIDENT_KINDS, incidentCard } from "../../src/slack/cards/incident-card.js";
import { incidentDetail } from "../../src/slack/cards/incident-detail.js";
import { localTime } from "../../src/slack/text/time.js";
import { said } from "./support/resolutions.js";
import { operationOf } from "./support/views.js";

describe("an incident card", () => {
  test.each(["refunded_elsewhere", "overdrawn"] as const)(
    "%s: beside an open operation of the same amount it names that one, and to decide it first",
    (kind) => {
      const facts = {
        id: "inc_1",
        kind,
        status: "open",
        operation: null,
        customer: null,
        detail: [],
        createdAt: new Date("2026-11-30T03:00:00Z"),
        closedBy: null,
        closedAt: null,
        closeReason: null,
      } as const;
      const operation = operationOf({ status: "QUARANTINED" });
      const card = said(incidentCard({ ...facts, undecided: [operation] }));
      expect(card).toContain("*What to do:* Decide first: ");
      expect(card).toContain(operation.id);
      expect(card).toContain("*Confirm committed* with its reference");
      expect(card).not.toContain("What to do:* Nothing");
      expect(said(incidentCard({ ...facts, undecided: [] }))).not.toContain("Decide first");
    },
  );

  test("of a duplicate says to leave frozen what is frozen, else to freeze, and who filed it", () => {
    const facts = {
      id: "inc_1",
      kind: "duplicate_effect",
      status: "open",
      customer: null,
      detail: [],
      createdAt: new Date(0),
      closedBy: null,
      closedAt: null,
      closeReason: null,
      undecided: [],
    } as const;
    const frozen = { kind: "refund", since: new Date(0), by: "U_ONC1", reason: null } as const;
    const card = (operation: ReturnType<typeof operationOf>) => said(incidentCard({ ...facts, operation }));
    expect(card(operationOf({ status: "QUARANTINED", frozen }))).toContain("Leave refunds frozen, keep both");
    expect(card(operationOf({ status: "QUARANTINED" }))).toContain(
      "Freeze refunds (`/ops freeze refund`), keep",
    );
    expect(card(operationOf({ status: "QUARANTINED" }))).toMatch(/Filed by.+<@U_AGENT>/u);
  });

  test("says whose order it is", () => {
    const card = incidentCard({
      id: "inc_1",
      kind: "overdrawn",
      status: "open",
      operation: null,
      customer: { name: "Tom Whitfield", ref: "CUS-7" },
      detail: [],
      createdAt: new Date(0),
      closedBy: null,
      closedAt: null,
      closeReason: null,
      undecided: [],
    });
    expect(said(card)).toContain("Tom Whitfield (CUS-7)");
  });

  test("of a refund elsewhere shows what happened and what is left, not how the balance is made up", () => {
    const balance = {
      captured: 18_000,
      reserved: 3_000,
      refunded: 1_000,
      refundedElsewhere: 7_000,
      before: 2_000,
    };
    expect(incidentDetail("refunded_elsewhere", { ...balance, effects: ["re_1"] }, "GBP")).toEqual([
      ["Refunded elsewhere", "£50.00 GBP"],
      ["Left to refund then", "£70.00 GBP"],
      ["Provider shows", "re_1"],
    ]);
    expect(incidentDetail("overdrawn", { ...balance, captured: 9_000 }, "GBP")).toContainEqual([
      "Too much by",
      "£20.00 GBP",
    ]);
  });

  test.each([
    ["QUARANTINED", "Decide it anew on its own card", "with on-call"],
    ["CONFIRMED", "has been settled since", "done"],
    ["REJECTED", "has been settled since", "refused by the provider"],
  ] as const)(
    "of contradicting evidence says how the operation stands now: %s",
    (status, meaning, stands) => {
      const facts = {
        id: "inc_1",
        kind: "contradiction",
        operation: operationOf({ status }),
        customer: null,
        detail: incidentDetail("contradiction", { was: "REJECTED" }, null),
        createdAt: new Date(0),
        closedAt: null,
        closeReason: null,
        undecided: [],
      } as const;
      const card = said(incidentCard({ ...facts, status: "open", closedBy: null }));
      for (const words of [meaning, stands, "State now"]) expect(card).toContain(words);
      if (status !== "QUARANTINED") expect(card).not.toContain("Decide it anew");
      expect(said(incidentCard({ ...facts, status: "closed", closedBy: "system:reconcile" }))).toContain(
        "Closed by Countersign itself",
      );
    },
  );

  test("of more than was paid says what of it rests on a word, what is left now, and when it is over", () => {
    const facts = {
      id: "inc_1",
      kind: "overdrawn",
      status: "open",
      operation: null,
      customer: null,
      detail: [],
      createdAt: new Date(0),
      closedBy: null,
      closedAt: null,
      closeReason: null,
      undecided: [],
    } as const;
    const one = operationOf({ status: "CONFIRMED" });
    const open = said(
      incidentCard({
        ...facts,
        vouched: [one],
        leftNow: { amountMinor: -7_000n, currency: "GBP", at: new Date("2026-11-30T03:00:00Z") },
      }),
    );
    expect(open).toContain(
      `nothing: £70.00 GBP more than was paid is refunded or set aside, as of ${localTime(new Date("2026-11-30T03:00:00Z"))}`,
    );
    expect(open).toContain(
      `(\`${one.id}\`) rests on a person's word alone. Open the payment at the provider`,
    );
    expect(open).not.toContain("*What to do:* Tell finance");
    expect(open).not.toMatch(/[-−]£|minus/u);
    const over = said(
      incidentCard({
        ...facts,
        vouched: [],
        leftNow: { amountMinor: 3_000n, currency: "GBP", at: new Date("2026-11-30T03:00:00Z") },
      }),
    );
    expect(over).toContain("It no longer is.");
    expect(over).toContain("£30.00 GBP");
    expect(over).not.toContain("Tell finance");
    expect(said(incidentCard({ ...facts, vouched: [] }))).toContain("*What to do:* Tell finance");
  });

  test("names states as people do", () => {
    expect(incidentDetail("contradiction", { was: "CONFIRMED", detail: "x" }, null)).toContainEqual([
      "It was",
      "confirmed",
    ]);
  });

  test.each(INCIDENT_KINDS)("%s: says what to do while it is open", (kind) => {
    const facts = { id: "inc_1", kind, operation: null, customer: null, detail: [], createdAt: new Date(0) };
    const nobody = { closedBy: null, closedAt: null, closeReason: null, undecided: [] };
    expect(said(incidentCard({ ...facts, ...nobody, status: "open" }))).toMatch(/\*What to do:\* [A-Z]/);
    expect(said(incidentCard({ ...facts, ...nobody, status: "closed" }))).not.toContain("What to do");
  });

  test("of a freeze that was lifted in the database speaks of the freeze, not of an operation", () => {
    const facts = {
      id: "inc_1",
      kind: "row_changed",
      status: "open",
      customer: null,
      createdAt: new Date(0),
      closedBy: null,
      closedAt: null,
      closeReason: null,
      undecided: [],
    } as const;
    const detail = incidentDetail("row_changed", { kind: "refund", problems: ["lifted"] }, null);
    const text = said(incidentCard({ ...facts, operation: null, detail }));
    expect(text).toContain("A freeze switch was changed in the database, and not by anybody on call.");
    expect(text).not.toContain("An operation's row");
    expect(detail).toContainEqual(["Frozen", "refund operations"]);
    const policy = incidentDetail("row_changed", { policy: "abc", problems: ["unknown"] }, null);
    const ofPolicy = said(incidentCard({ ...facts, operation: null, detail: policy }));
    expect(ofPolicy).toContain("What is decided under it is not sent here.");
    expect(ofPolicy).not.toContain("freeze switch");
    expect(said(incidentCard({ ...facts, operation: operationOf(), detail: [] }))).toContain(
      "An operation's row",
    );
  });

  test.each([
    ["QUARANTINED", "One person on call presses *Reject* on the operation's card, another presses *Agree*"],
    ["REJECTED", "has been closed as not carried out"],
    ["CONFIRMED", "has been settled since"],
    ["REVERSED", "has been settled since"],
  ] as const)("of what was made differently says what is left to do: %s", (status, words) => {
    const facts = { id: "inc_1", kind: "made_differently", status: "open", customer: null } as const;
    const nobody = { closedBy: null, closedAt: null, closeReason: null, undecided: [], detail: [] };
    const text = said(
      incidentCard({ ...facts, ...nobody, operation: operationOf({ status }), createdAt: new Date(0) }),
    );
    expect(text).toContain(words);
    expect(text).not.toContain("Two people press");
    if (status !== "QUARANTINED") expect(text).not.toMatch(/presses \*Reject/);
  });

  test("of an automatic freeze follows the switch", () => {
    const facts = { id: "inc_1", kind: "freeze_tripped", operation: null, customer: null } as const;
    const nobody = { closedBy: null, closedAt: null, closeReason: null, undecided: [], detail: [] };
    const open = { ...facts, ...nobody, status: "open", createdAt: new Date(0) } as const;
    expect(said(incidentCard(open))).toContain("new effects are frozen until a person thaws them");
    expect(said(incidentCard(open))).toContain("One person on call is enough for that thaw");
    const thawed = said(
      incidentCard({ ...open, thawed: { by: "slack:U_ONC1", at: new Date("2026-11-30T03:00:00Z") } }),
    );
    expect(thawed).toMatch(/Thawed.*<@U_ONC1>.*03:00 UTC/u);
    expect(thawed).not.toMatch(/until a person thaws|\/ops thaw/u);
  });

  test("names the switch that tripped as people do", () => {
    expect(incidentDetail("freeze_tripped", { kind: "all", reason: "x" }, null)).toContainEqual([
      "Frozen",
      "everything",
    ]);
    expect(incidentDetail("freeze_tripped", { kind: "cancel_order" }, null)).toEqual([
      ["Frozen", "cancel order operations"],
    ]);
  });
});
