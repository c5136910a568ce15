/** App Home is where somebody decides without the channel: it says what the message card says, whole, or leaves the approval for later. */
import { describe, expect, test } from "vitest";
import type { RunState } from "../../src/domain/run.js";
import { approvalCard } from "../../src/slack/cards/approval-card.js";
import {
  HOME_APPROVALS,
  HOME_STOPPABLE,
  HOME_TICKETS,
  type HomeFacts,
  homeView,
} from "../../src/slack/cards/home.js";
import type { OperationFacts } from "../../src/slack/cards/sentences.js";
import { LIMITS } from "../../src/slack/limits.js";
import { localTime } from "../../src/slack/text/time.js";
import { type ApprovalFacts, approvalViewOf, listedRunOf, operationOf } from "./support/views.js";

const AT = new Date("2026-11-29T12:00:00Z");
const FACTS: ApprovalFacts = {
  money: { amountMinor: 18_000n, currency: "GBP" },
  customerName: "Tom Whitfield",
  customerRef: "CUS-7",
  orderRef: "ORD-10042",
  status: "delivered",
  reason: "The parcel arrived broken.",
  itemRefs: [],
  reasons: [
    "Refunds above £100.00 GBP need 2 people in the role supervisor.",
    "The customer of this ticket was not confirmed when this was judged.",
    "The same refund was done before; this is number 2.",
  ],
  note: null,
  endDetail: "",
  state: "PENDING",
  operationStatus: "AWAITING_APPROVAL",
  changes: [],
  earlier: 0,
};

/** Held for three reasons, for two people, one of whom has approved. */
function held(n = 0, facts: Partial<ApprovalFacts> = {}) {
  const view = approvalViewOf({ ...FACTS, ...facts });
  const id = `apr_${n.toString(16).padStart(32, "0")}` as const;
  const vote = {
    userId: "U_SUP2",
    person: "T_HOME:U_SUP2",
    verdict: "approve",
    note: "Seen the photo.",
    role: "supervisor",
    grantedBy: null,
    cardVersion: 1,
    seal: null,
    at: AT,
  } as const;
  return {
    ...view,
    approval: {
      ...view.approval,
      id,
      approversNeeded: 2,
      votes: [vote],
      binding: { ...view.approval.binding, bindingUnconfirmed: true },
    },
  };
}

const EMPTY: HomeFacts = {
  notice: null,
  approvals: { ok: true, views: [], more: false },
  stoppable: [],
  tickets: [],
  asked: new Map(),
  oncall: null,
  frozen: [],
  now: AT,
};

const home = (facts: Partial<HomeFacts>) => homeView({ ...EMPTY, ...facts });
const approvals = (...views: ReturnType<typeof held>[]): HomeFacts["approvals"] => ({
  ok: true,
  views,
  more: false,
});
const decideIds = (blocks: readonly { block_id?: string | undefined }[]): string[] =>
  blocks.flatMap(({ block_id: id }) => (id?.startsWith("decide.") === true ? [id] : []));

describe("an approval in Home", () => {
  test("says everything that decides it: the kind, every reason, the votes, what Approve does", () => {
    const text = JSON.stringify(home({ approvals: approvals(held()) }).blocks);
    for (const fact of [
      "Approval needed: refund",
      "Refunds above £100.00 GBP need 2 people in the role supervisor.",
      "The same refund was done before; this is number 2.",
      "Approving confirms the customer for this operation alone.",
      "1 of 2 approvals given.",
      "<@U_SUP2>",
      "Seen the photo.",
      "*If approved:* The amount goes back to the customer's original payment method, once.",
    ]) {
      expect(text).toContain(fact);
    }
  });

  test("says it before the first vote too: none of two is given", () => {
    const view = held();
    const none = { ...view, approval: { ...view.approval, votes: [] } };
    expect(JSON.stringify(home({ approvals: approvals(none) }).blocks)).toContain("0 of 2 approvals given.");
  });

  test("is block for block the message card, but for the id that tells the buttons of several apart", () => {
    const view = held(7, {
      earlier: 3,
      changes: [{ what: "order_status", from: "packed", to: "delivered" }],
    });
    const card = approvalCard(view).blocks.map((block) =>
      block.type === "actions" ? { ...block, block_id: `decide.${view.approval.id}` } : block,
    );
    expect(home({ approvals: approvals(view) }).blocks.slice(1, 1 + card.length)).toEqual(card);
  });

  test("with more reasons than a card has lines says how many more there are", () => {
    // And the one about the customer.
    const reasons = Array.from({ length: 15 }, (_unused, n) => `Reason ${n}.`);
    expect(JSON.stringify(home({ approvals: approvals(held(0, { reasons })) }).blocks)).toContain(
      "• 4 more under Full text.",
    );
  });
});

describe("what is frozen", () => {
  const frozen = [{ kind: "refund", since: AT, by: "U_ONC1", reason: null }] as const;
  const top = (facts: Partial<HomeFacts>): string => JSON.stringify(home({ frozen, ...facts }).blocks[0]);
  const oncall = { unknown: [], quarantined: [], incidents: [], frozen: [] };

  test("stands above everything: in short over cards, whole without one, in on-call's own part for them", () => {
    expect(top({ approvals: approvals(held()) })).toContain(
      "*Refunds are frozen.* Nothing is sent until on-call thaws.",
    );
    expect(top({ approvals: approvals(held()), oncall })).toContain("*Refunds are frozen.*");
    expect(top({})).toMatch(/\*Refunds are frozen\* since .* by <@U_ONC1>/u);
    expect(top({ oncall })).toContain("Approvals for you");
    expect(top({ frozen: [] })).toContain("Approvals for you");
  });
});

describe("a ticket in Home", () => {
  const ticket = (state: RunState, ...operations: OperationFacts[]): string => {
    const listed = listedRunOf();
    const tickets = [{ ...listed, run: { ...listed.run, state } }];
    return JSON.stringify(home({ tickets, asked: new Map([[listed.run.id, operations]]) }).blocks);
  };
  const small = operationOf({ status: "CONFIRMED", amountMinor: 2_000n });

  test.each([
    ["resolved", small, "Refund of £20.00 GBP on order ORD-10042: done"],
    [
      "awaiting_approval",
      operationOf(),
      "Refund of £180.00 GBP on order ORD-10042: waits for an approval, nothing sent",
    ],
    [
      "waiting",
      operationOf({ status: "OUTCOME_UNKNOWN", amountMinor: 899n, currency: "JPY" }),
      "Refund of ¥899 JPY on order ORD-10042: sent, outcome not known yet, being checked",
    ],
    ["escalated", operationOf({ status: "DENIED" }), "Refund of £180.00 GBP on order ORD-10042: denied"],
    [
      "cancelled",
      operationOf({ status: "PREPARED" }),
      "Refund of £180.00 GBP on order ORD-10042: left to another ticket that asks for it too, told there",
    ],
    [
      "resolved",
      operationOf({ status: "CONFIRMED", kind: "cancel_order", amountMinor: 0n }),
      "Cancellation of order ORD-10042: done",
    ],
  ] as const)(
    "that is %s says what it asked for, with the money, and how that stands",
    (state, about, said) => {
      expect(ticket(state, about)).toContain(said);
    },
  );

  test.each([
    ["PREPARED", "Waiting to be sent"],
    ["DISPATCHED", "Waiting for an outcome"],
  ] as const)("that waits with what is %s is called: %s", (status, title) => {
    expect(ticket("waiting", operationOf({ status }))).toContain(`*${title}*`);
  });

  test("with many names three and counts the others; with none says nothing of them", () => {
    expect(ticket("resolved", small, small, small, small, small)).toContain("and 2 more");
    expect(ticket("resolved", small, small, small, small, small).split("Refund of")).toHaveLength(4);
    expect(ticket("resolved")).not.toContain("Refund of");
  });
});

describe("what cools off in Home", () => {
  const notBefore = new Date("2026-11-29T12:10:00Z");
  const view = held(5, { state: "RELEASED", operationStatus: "PREPARED" });
  const cooling = {
    ...view,
    operation: operationOf({ ...view.operation, notBefore, approvedBy: ["U_SUP2"] }),
  };

  test("stands with its approvers until when it can be undone, and with the button that does", () => {
    const text = JSON.stringify(home({ stoppable: [cooling] }).blocks);
    expect(text).toContain("Approved, not sent yet");
    expect(text).toContain("Refund of £180.00 GBP on order ORD-10042");
    expect(text).toContain(`It is not sent before ${localTime(notBefore)}. Until then it can be undone`);
    expect(text).toContain("Undo approval of £180.00 GBP");
    expect(text).not.toContain("Deny after all");
  });

  test("stands with its filer as resting, in the reader's time", () => {
    const listed = listedRunOf();
    const tickets = [{ ...listed, run: { ...listed.run, state: "waiting" as const } }];
    const asked = new Map([[listed.run.id, [cooling.operation]]]);
    expect(JSON.stringify(home({ tickets, asked }).blocks)).toContain(
      `approved, not sent before ${localTime(notBefore)} (cooling off)`,
    );
  });
});

describe("on-call's part of Home", () => {
  const incident = (n: number) => ({
    id: `inc_${n}`,
    kind: "duplicate_effect" as const,
    operationId: null,
    status: "open" as const,
    createdAt: AT,
    target: "ORD-10042",
    amount: "£180.00 GBP",
    references: [`re_${n}`],
  });
  const part = (count: number): string =>
    JSON.stringify(
      home({
        oncall: {
          unknown: [],
          quarantined: [],
          incidents: Array.from({ length: count }, (_unused, n) => incident(n)),
          frozen: [],
        },
      }).blocks,
    );

  test("lists the incidents that nobody has closed, each with order, amount and reference", () => {
    expect(part(1)).toContain("*Open incidents*");
    expect(part(1)).toContain("`inc_0` Duplicate effect · ORD-10042 · £180.00 GBP · re_0");
    expect(part(1)).not.toContain("/ops incidents");
    expect(part(20)).toContain("`/ops incidents` lists the others.");
  });

  test("says that there is none", () => {
    expect(part(0)).toMatch(/\*Open incidents\*.*?None\./u);
  });
});

describe("a full Home", () => {
  const many = Array.from({ length: HOME_APPROVALS }, (_unused, n) =>
    held(n, { earlier: 5, changes: [{ what: "order_status", from: "packed", to: "delivered" }] }),
  );
  const full: Partial<HomeFacts> = {
    notice: "Approved.",
    approvals: approvals(...many),
    stoppable: Array.from({ length: HOME_STOPPABLE }, (_unused, n) => {
      const view = held(100 + n, { state: "RELEASED", operationStatus: "PREPARED" });
      return { ...view, operation: { ...view.operation, notBefore: AT } };
    }),
    tickets: Array.from({ length: HOME_TICKETS }, () => listedRunOf()),
    oncall: { unknown: [], quarantined: [], incidents: [], frozen: [] },
    frozen: [{ kind: "refund", since: AT, by: "U_ONC1", reason: null }],
  };

  test("keeps to Slack's hundred blocks with whole cards only, and says that there are more", () => {
    const { blocks } = home(full);
    expect(blocks.length).toBeLessThanOrEqual(LIMITS.blocksPerView);
    const shown = decideIds(blocks);
    expect(shown.length).toBeGreaterThanOrEqual(3);
    expect(shown.length).toBeLessThan(HOME_APPROVALS);
    expect(shown).toEqual(many.slice(0, shown.length).map(({ approval }) => `decide.${approval.id}`));
    const text = JSON.stringify(blocks);
    expect(text.split("*If approved:*")).toHaveLength(shown.length + 1);
    expect(text).toContain("There are more; they come up here as these are decided.");
    expect(text).toContain("Refresh");
    expect(text).toContain("On-call");
  });

  test("shows the longest card there can be, whole, beside everything else", () => {
    const [vote] = held().approval.votes;
    if (vote === undefined) throw new Error("the example has a vote");
    const view = held();
    const votes = Array.from({ length: 60 }, () => vote);
    const { blocks } = home({
      ...full,
      approvals: approvals({ ...view, approval: { ...view.approval, votes } }),
    });
    expect(blocks.length).toBeLessThanOrEqual(LIMITS.blocksPerView);
    expect(decideIds(blocks)).toHaveLength(1);
  });

  test("says nothing of more when all are shown", () => {
    const { blocks } = home({ approvals: approvals(held(1), held(2)) });
    expect(decideIds(blocks)).toHaveLength(2);
    expect(JSON.stringify(blocks)).not.toContain("There are more");
  });
});

describe("the parts of Home", () => {
  test("have a line between them, and none at the ends", () => {
    const { blocks } = home({
      approvals: approvals(held(1), held(2)),
      stoppable: [held(3, { state: "APPROVED" })],
      oncall: { unknown: [], quarantined: [], incidents: [], frozen: [] },
      frozen: [{ kind: "refund", since: AT, by: "U_ONC1", reason: null }],
    });
    const types = blocks.map(({ type }) => type);
    expect(types.filter((type) => type === "divider")).toHaveLength(6);
    expect(types[0]).not.toBe("divider");
    expect(types.at(-1)).not.toBe("divider");
    for (const [at, block] of blocks.entries()) {
      const title = block.type === "header" && "text" in block ? block.text.text : "";
      if (["Approved, not sent yet", "Your tickets", "On-call"].includes(title))
        expect(types[at - 1], title).toBe("divider");
    }
    expect(types.some((type, at) => type === "divider" && types[at + 1] === "divider")).toBe(false);
  });
});
