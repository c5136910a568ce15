/** What somebody on call reads at three in the morning: what is left to do, who filed it, and what is frozen and thawed by which command. */
import { describe, expect, test } from "vitest";
import type { FreezeState, VerbView } from "../../src/ops/index.js";
import { resolveForm } from "../../src/slack/cards/forms.js";
import { quarantineCard } from "../../src/slack/cards/ops-cards.js";
import { thawSentence } from "../../src/slack/cards/thaw-words.js";
import { localTime } from "../../src/slack/text/time.js";
import { said } from "./support/resolutions.js";
import { operationOf } from "./support/views.js";

const AT = new Date("2026-11-30T03:00:00Z");
const FROZEN = { kind: "refund", since: AT, by: "U_ONC1", reason: "it answers oddly" } as const;
const PLACE = { channelId: null, messageTs: null, threadTs: null, home: false };
const WORKSPACE = "https://shop.slack.com/";
const parked = (quarantineReason: string, more: Parameters<typeof operationOf>[0] = {}) =>
  operationOf({ status: "QUARANTINED", quarantineReason, providerRef: null, ...more });
const cardOf = (operation: ReturnType<typeof operationOf>, key?: { until: Date; over: boolean }): string =>
  said(
    quarantineCard({
      operation,
      attempts: [],
      resolution: null,
      workspace: WORKSPACE,
      ...(key === undefined ? {} : { key }),
    }),
  );

describe("a quarantine card during a freeze", () => {
  test.each([
    ["unknown_too_long", true],
    ["postcondition_failed: re_1", false],
    ["duplicate_effect: re_1, re_2", false],
    ["pending_too_long: re_1", false],
  ] as const)("of %s: that a retry is possible after the thaw is said: %s", (reason, retry) => {
    const card = cardOf(parked(reason, { frozen: FROZEN }));
    expect(card).toContain("Refunds are frozen");
    expect(card.includes("*Authorise retry* is possible after that.")).toBe(retry);
  });
});

describe("a quarantine card", () => {
  test("says who filed it and leads to the ticket's thread", () => {
    const message = { channelId: "C_TICK", ts: "1796000000.000100" };
    const ticket = { id: `tkt_${"0".repeat(32)}`, ref: null, message } as const;
    const card = cardOf(parked("unattributed_effect: re_9", { ticket }));
    expect(card).toContain("Filed by");
    expect(card).toContain(
      "<@U_AGENT>, <https://shop.slack.com/archives/C_TICK/p1796000000000100|the ticket's thread>",
    );
  });

  test("says until when its key is good, or that its life is over", () => {
    const operation = parked("unknown_too_long");
    expect(cardOf(operation, { until: AT, over: false })).toContain(`Good until ${localTime(AT)}`);
    expect(cardOf(operation, { until: AT, over: true })).toContain(
      `Its life ended ${localTime(AT)}: never sent again`,
    );
    expect(cardOf(operation)).not.toContain("Good until");
  });

  test("names no reference of a confirmation in whose place it was rejected", () => {
    const named = { providerRef: "re_77", referenceGiven: true } as const;
    expect(cardOf(operationOf({ ...named, status: "REJECTED" }))).not.toContain("re_77");
    expect(cardOf(parked("opened_again", named))).toContain("re_77");
    expect(cardOf(operationOf({ ...named, status: "CONFIRMED" }))).toContain("re_77");
    expect(cardOf(operationOf({ ...named, referenceGiven: false, status: "REJECTED" }))).toContain("re_77");
  });
});

describe("the form of Authorise retry during a freeze", () => {
  const verb: VerbView = {
    verb: "retry",
    possible: false,
    people: 1,
    sentence: "Not as long as this holds: Refunds are frozen since 30 Nov 2026, 03:00 UTC: it answers oddly.",
  };
  const blocks = (frozen: typeof FROZEN | null) =>
    resolveForm(
      parked("unknown_too_long", { frozen }),
      verb,
      { about: "op_1", verb: "retry", place: PLACE },
      null,
    ).blocks.map((block) => JSON.stringify(block));

  test("says first that sending is frozen, and that a retry is possible after the thaw", () => {
    const [first, ...rest] = blocks(FROZEN);
    expect(first).toContain("*Refunds are frozen* since");
    expect(first).toContain(
      "*Authorise retry* is possible after that; until then this form only asks the provider.",
    );
    expect(rest.join("")).not.toContain("Refunds are frozen");
    expect(blocks(null)[0]).not.toContain("possible after that");
  });
});

describe("a thaw of what has no switch that is on", () => {
  const switchOf = (kind: FreezeState["kind"], frozen: boolean): FreezeState => ({
    kind,
    frozen,
    by: frozen ? "U_ONC1" : null,
    reason: frozen ? "odd" : null,
    at: frozen ? AT : null,
    version: 1,
    thawAskedBy: null,
    thawExpiresAt: null,
  });
  const all = switchOf("all", true);
  const refund = switchOf("refund", true);

  test.each([
    [
      "refund",
      [all],
      `Refund operations are frozen with everything, since ${localTime(AT)} by <@U_ONC1> (odd); they have no freeze of their own. Nothing was changed. \`/ops thaw\` thaws everything.`,
    ],
    [
      "all",
      [refund],
      `Not everything is frozen, only refund operations, since ${localTime(AT)} by <@U_ONC1> (odd). Nothing was changed. \`/ops thaw refund\` thaws that.`,
    ],
    [
      "cancel_order",
      [refund],
      `Not frozen: cancel order operations. Frozen: refund operations, since ${localTime(AT)} by <@U_ONC1> (odd). Nothing was changed. \`/ops thaw refund\` thaws that.`,
    ],
    ["refund", [], "Not frozen: refund operations. Nothing was changed."],
    ["all", [], "Not frozen: everything. Nothing was changed."],
  ] as const)(
    "%s while %o: names what is frozen and the command that thaws it",
    (kind, frozenNow, sentence) => {
      expect(thawSentence({ outcome: "not_frozen", state: switchOf(kind, false), frozenNow })).toBe(sentence);
    },
  );
});
