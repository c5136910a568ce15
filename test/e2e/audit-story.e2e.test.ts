/** One refund, told from nothing but the exported log: from the ticket's text to the provider's reference. */
import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { tellChainHead } from "../../src/app/compose/chain-head.js";
import { heldRefund } from "../../src/app/demo/stories/refunds.js";
import { systemIds } from "../../src/app/system.js";
import { exportAudit, sealBlocks } from "../../src/ledger/index.js";
import { createNotices } from "../../src/slack/index.js";
import { withDatabases } from "./support/databases.js";
import { type House, inHouse } from "./support/house.js";

const databases = withDatabases();
const TICKET = "Tom Whitfield's jacket arrived torn, order ORD-10042. Please refund the £180.00.";
const sha256 = (text: string): string => createHash("sha256").update(text, "utf8").digest("hex");

const Event = z.looseObject({
  type: z.string(),
  from: z.string().nullable(),
  to: z.string().nullable(),
  actor: z.string(),
  attempt: z.number().nullable(),
  token: z.number(),
  operation: z.string(),
  data: z.record(z.string(), z.unknown()),
});
const Line = z.looseObject({ id: z.number(), event: Event, prevHash: z.string(), hash: z.string() });
const Block = z.looseObject({
  block: z.number(),
  firstEvent: z.number(),
  lastEvent: z.number(),
  hash: z.string(),
});
const Vote = z.looseObject({
  person: z.string().regex(/^person:[0-9a-f]{64}$/),
  verdict: z.string(),
  role: z.string(),
  cardVersion: z.number(),
  at: z.iso.datetime(),
});

async function exported(house: House): Promise<unknown[]> {
  const lines: unknown[] = [];
  for await (const line of exportAudit(house.db)) lines.push(JSON.parse(line));
  return lines;
}

describe("the exported log explains a refund end to end", () => {
  it(
    "ticket, run, policy and its rules, card, votes, attempts with their key and token, the provider's reference",
    {
      timeout: 180_000,
    },
    () =>
      inHouse(databases, { transport: "http" }, async (house) => {
        const { stage, world } = house;
        await stage.start();
        world.payments.control.setWebhook(null);
        const thread = await heldRefund(stage);
        // The first request is lost before the provider did anything: there are two attempts to explain.
        stage.fault({ kind: "drop_before_commit" });
        await stage.approve("U_SUP1", thread);
        await stage.operationIn("CONFIRMED");
        await stage.runIn(thread, "resolved");
        await sealBlocks(house.db, { patienceMs: 30_000 });

        const document = await exported(house);
        const lines = document.flatMap((line) => {
          const parsed = Line.safeParse(line);
          return parsed.success ? [parsed.data] : [];
        });
        const [held] = lines.filter(({ event }) => event.type === "hold");
        const story = lines.filter(({ event }) => event.operation === held?.event.operation);
        const typed = (type: string) =>
          story.filter(({ event }) => event.type === type).map(({ event }) => event);

        expect(held?.event.data).toMatchObject({
          ticketTextHash: sha256(TICKET),
          run: expect.stringMatching(/^run_/),
          ticket: expect.stringMatching(/^tkt_/),
          order: "ORD-10042",
          amount: 18_000,
          currency: "GBP",
          policyHash: expect.stringMatching(/^[0-9a-f]{64}$/),
          rules: expect.arrayContaining([expect.objectContaining({ rule: expect.any(String) })]),
        });
        expect(JSON.stringify(held)).not.toContain("Whitfield");

        const [release] = typed("release");
        expect(release?.data).toMatchObject({
          approval: expect.stringMatching(/^apr_/),
          policyHash: held?.event.data["policyHash"],
          rules: expect.any(Array),
        });
        const votes = z.array(Vote).parse(release?.data["votes"]);
        expect(votes.map(({ verdict, role, cardVersion }) => ({ verdict, role, cardVersion }))).toEqual([
          { verdict: "approve", role: "supervisor", cardVersion: 1 },
        ]);

        const sent = story.filter(({ event }) => event.to === "DISPATCHED").map(({ event }) => event);
        expect(sent.map(({ attempt }) => attempt)).toEqual([1, 2]);
        const tokens = sent.map(({ token }) => token);
        expect(tokens[1]).toBeGreaterThan(tokens[0] ?? Number.POSITIVE_INFINITY);
        const keys = new Set(
          (await world.payments.control.requests({ method: "POST" })).map(
            ({ idempotencyKey }) => idempotencyKey,
          ),
        );
        expect([...keys]).toEqual([held?.event.data["idempotencyKey"]]);

        const [effect] = await world.payments.control.effects();
        const [confirmed] = typed("settle_confirmed");
        expect(JSON.stringify(confirmed?.data)).toContain(effect?.id ?? "no effect");

        // Each link recomputes from the line before it, and a block covers every line.
        story.forEach((line, index) => {
          expect(line.prevHash).toBe(index === 0 ? "" : story[index - 1]?.hash);
        });
        const blocks = document.flatMap((line) => {
          const parsed = Block.safeParse(line);
          return parsed.success ? [parsed.data] : [];
        });
        const lastId = story.at(-1)?.id ?? Number.POSITIVE_INFINITY;
        expect(blocks.some(({ firstEvent, lastEvent }) => firstEvent <= lastId && lastId <= lastEvent)).toBe(
          true,
        );
        await house.assertAuditIntact();

        await chainHeadIsPosted(
          house,
          blocks.map(({ hash }) => hash),
        );
      }),
  );
});

/** The day's head stands in the ops channel, once, and is a block of the export. */
async function chainHeadIsPosted({ stage, world, db }: House, hashes: readonly string[]): Promise<void> {
  const channels = { tickets: "C_TICK", approvals: "C_APPR", ops: "C_OPS" };
  const notices = createNotices({ ids: systemIds, wake: async () => {}, config: { channels } });
  const heads = () =>
    world.slack.control
      .messages("U_ONC1", "C_OPS")
      .filter(({ text }) => text.startsWith("Audit chain: block"));
  // As the worker's timer does, which may have been first; its second pass of a day says nothing.
  await tellChainHead({ db, notices });
  await stage.until("the chain's head in the ops channel", async () => heads().length > 0);
  await tellChainHead({ db, notices });
  expect(heads()).toHaveLength(1);
  expect(hashes.some((hash) => heads()[0]?.text.includes(hash))).toBe(true);
}
