/** `/ops runs`: each run is recognised by who filed it, what it asked for and how its ticket begins, and leads to its ticket. */
import { describe, expect, test } from "vitest";
import type { RunsView } from "../../src/ops/index.js";
import { opsRuns } from "../../src/slack/cards/ops-views.js";
import { LIMITS } from "../../src/slack/limits.js";

type RunRow = RunsView["runs"][number];

const AT = new Date("2026-11-29T12:00:00Z");
const ID = "0192d3a4b5c6d7e8f90a1b2c3d4e5f60";

const refund = {
  operationId: `op_${ID}`,
  kind: "refund",
  status: "CONFIRMED",
  amountMinor: 18_000n,
  currency: "GBP",
  orderRef: "ORD-10042",
  subscriptionRef: null,
} as const;

const run = (changes: Partial<RunRow> = {}): RunRow => ({
  id: `run_${ID}`,
  ticketId: `tkt_${ID}`,
  state: "resolved",
  steps: 3,
  endCode: "end_turn",
  createdAt: AT,
  dueAt: null,
  filer: "U_AGENT",
  excerpt: "Tom Whitfield's jacket arrived torn, order ORD-10042.",
  message: { channelId: "C_TICK", ts: "1795953600.000100" },
  asked: [refund],
  ...changes,
});

const WORKSPACE = "https://northwind.slack.com/";
const list = (rows: readonly RunRow[], workspace: string | null = WORKSPACE, next: string | null = null) =>
  opsRuns({ outcome: "runs", runs: rows, next }, workspace);
const said = (...rows: RunRow[]): string => JSON.stringify(list(rows).blocks);

describe("a run in the list", () => {
  test("says who filed it, what it asked for with its money and state, and how the ticket begins", () => {
    const text = said(run());
    expect(text).toContain("*Finished* · filed by <@U_AGENT> · 3 steps");
    expect(text).toContain("Refund £180.00 GBP ORD-10042: confirmed");
    expect(text).toContain("“Tom Whitfield's jacket arrived torn, order ORD-10042.”");
  });

  test("leads to its ticket, unless it has no message or the workspace is not known", () => {
    const link = "<https://northwind.slack.com/archives/C_TICK/p1795953600000100|Ticket>";
    expect(said(run())).toContain(link);
    expect(said(run({ message: null }))).not.toContain("|Ticket>");
    expect(JSON.stringify(list([run()], null).blocks)).not.toContain("|Ticket>");
  });

  test("whose refund cools off waits to be sent, not for an outcome", () => {
    expect(said(run({ state: "waiting", asked: [{ ...refund, status: "PREPARED" }] }))).toContain(
      "*Waiting to be sent*",
    );
  });

  test("whose refund is prepared says what that means", () => {
    expect(said(run({ state: "waiting", asked: [{ ...refund, status: "PREPARED" }] }))).toContain(
      ": allowed, not carried out yet",
    );
  });

  test("names three of many, and none where it asked for nothing", () => {
    expect(said(run({ asked: [refund, refund, refund, refund, refund] }))).toContain("and 2 more");
    expect(said(run({ asked: [] }))).not.toContain("Refund");
  });

  test("shows the ticket's words literally, without the addresses in them", () => {
    const text = said(run({ excerpt: "<!channel> pay to bob@example.com\nnow" }));
    expect(text).not.toContain("<!channel>");
    expect(text).not.toContain("bob@example.com");
  });
});

test("a full list stays within Slack's limits, and says where the older ones are", () => {
  const asked = Array.from({ length: 9 }, () => refund);
  const rows = Array.from({ length: 15 }, () => run({ asked, excerpt: "é".repeat(200) }));
  const { blocks } = list(rows, WORKSPACE, "more");
  expect(blocks.length).toBeLessThanOrEqual(LIMITS.blocksPerMessage);
  for (const block of blocks) {
    if (block.type === "section") expect(block.text?.text.length).toBeLessThanOrEqual(LIMITS.sectionText);
  }
  expect(JSON.stringify(blocks)).toContain("`countersign runs list` shows all.");
});
