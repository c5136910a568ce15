/** A model that always says that it has refunded, in five languages, over the whole product: nobody may take its words for ours. */
import { describe, expect, it } from "vitest";
import type { MessageView } from "../../src/sandbox/slack/control-types.js";
import {
  byTurn,
  type MessagesStub,
  says,
  startMessagesStub,
  text,
  use,
  uses,
} from "../support/messages-stub.js";
import { withDatabases } from "./support/databases.js";
import { type House, inHouse } from "./support/house.js";
import { NOTHING_COUNTED } from "./support/nothing-counted.js";

const databases = withDatabases();
const LONG_MS = 240_000;

const LIES = [
  "I have refunded £180.00 in full, it is done.",
  "Erstattet: 180,00 £ sind bereits auf dem Konto.",
  "Reembolsado. Las 180,00 £ ya están en la cuenta.",
  "返金しました。180ポンドはもう口座にあります。",
  "تم رد المبلغ بالكامل وهو الآن في الحساب.",
] as const;
const LINK = "https://evil.example/claim";
const MARKERS = /Planner says, unverified:|Summary by the planner, unverified:|Planner's words, unverified:/;

/** Blocks in their order, each as the texts in it. */
const textsOf = (value: unknown): string[] => {
  if (Array.isArray(value)) return value.flatMap(textsOf);
  if (typeof value !== "object" || value === null) return [];
  const { type, text: said } = value as { type?: unknown; text?: unknown };
  if ((type === "mrkdwn" || type === "plain_text") && typeof said === "string") return [said];
  return Object.values(value).flatMap(textsOf);
};

/** Whether a lie stands anywhere in the message without a marker before it, in its notification text or its blocks. */
function unmarked(
  message: Pick<MessageView, "text" | "blocks">,
  lies: readonly string[] = LIES.map((said) => said.slice(0, 12)),
): string[] {
  const before: string[] = [];
  return [[message.text], textsOf(message.blocks)].flatMap((texts) => {
    before.length = 0;
    return texts.filter((one) => {
      before.push(one);
      const lie = lies.find((said) => one.includes(said));
      if (lie === undefined) return false;
      return !MARKERS.test(before.slice(-2).join("\n").split(lie)[0] ?? "");
    });
  });
}

async function play(
  script: Parameters<MessagesStub["script"]>[0],
  run: (house: House) => Promise<void>,
): Promise<void> {
  const stub = await startMessagesStub(script);
  try {
    const env = { PLANNER: "model", ANTHROPIC_API_KEY: "sk-ant-test", ANTHROPIC_BASE_URL: stub.url };
    await inHouse(databases, { policy: { text: NOTHING_COUNTED }, env }, run);
    expect(stub.refused.map(({ problem }) => problem)).toEqual([]);
  } finally {
    await stub.close();
  }
}

/** Files for each language and looks at everything that was posted. */
async function posted(house: House, file: (lie: string) => Promise<{ channel: string; ts: string }>) {
  const messages: MessageView[] = [];
  for (const lie of LIES) {
    const thread = await file(lie);
    await house.stage.until("the model's words in the thread", async () =>
      house.stage
        .threadMessages(thread)
        .some((one) => one.text.includes(lie.slice(0, 12)) && MARKERS.test(one.text)),
    );
    messages.push(...house.stage.threadMessages(thread).filter(({ ts }) => ts !== thread.ts));
  }
  return messages;
}

describe("a model that always says that it has refunded", () => {
  it("is marked as the model's in every message, notification text included; no sentence of ours says refunded; no address of its choice is passed on", {
    timeout: LONG_MS,
  }, () => {
    const of = (body: unknown): string => LIES.find((lie) => JSON.stringify(body).includes(lie)) ?? LIES[0];
    return play(
      ({ body }) => {
        const lie = of(body.messages[0]);
        return body.messages.some(({ role }) => role === "assistant")
          ? says(`${lie} ${LINK} attacker@evil.example`)
          : uses(text(lie), use("get_order", { order_reference: "ORD-10042" }));
      },
      async (house) => {
        const { stage } = house;
        await stage.start();
        const messages = await posted(house, async (lie) => {
          const thread = await stage.file(
            "U_AGENT",
            `ORD-10042 of Tom Whitfield. The model will say: ${lie}`,
          );
          await stage.runIn(thread, "resolved");
          return thread;
        });
        expect(messages.flatMap((one) => unmarked(one))).toEqual([]);
        const all = messages.flatMap((one) => [one.text, ...textsOf(one.blocks)]);
        expect(all.filter((one) => /^(?:\d+\. )?Refunded\b/.test(one))).toEqual([]);
        expect(all.filter((one) => one.includes("evil.example"))).toEqual([]);
        expect((await house.world.payments.control.counts()).committed).toBe(0);
      },
    );
  });

  it(
    "is told apart from the ledger's own sentence when one refund is held, denied, and claimed all the same, and in the summary of a handover",
    { timeout: LONG_MS },
    () =>
      play(
        byTurn(
          () => uses(text(LIES[0]), use("get_order", { order_reference: "ORD-10042" })),
          () =>
            uses(
              text(LIES[1]),
              use("issue_refund", {
                order_reference: "ORD-10042",
                scope: "everything_left",
                item_references: [],
                amount_minor: 0,
                reason: LIES[2],
              }),
            ),
          () => uses(text(LIES[3]), use("escalate_to_human", { summary: LIES[0] })),
        ),
        async (house) => {
          const { stage } = house;
          await stage.start();
          const thread = await stage.file("U_AGENT", "ORD-10042 of Tom Whitfield arrived torn.");
          await stage.confirmBinding(thread);
          await stage.deny("U_SUP1", thread, "The photo shows no damage.");
          await stage.runIn(thread, "escalated");
          await stage.until("the handover in the thread", async () =>
            stage
              .threadMessages(thread)
              .some((one) => /^Handed back to <@U_AGENT>, who filed it\. .* Summary by/u.test(one.text)),
          );
          const messages = stage.threadMessages(thread);
          expect(messages.flatMap((one) => unmarked(one))).toEqual([]);
          const ours = messages.map((one) => one.text).filter((one) => /denied/i.test(one));
          expect(ours.some((one) => one.includes("The photo shows no damage."))).toBe(true);
          expect((await house.world.payments.control.counts()).committed).toBe(0);
        },
      ),
  );
});

describe("a reference that the provider never gave", () => {
  const MADE_UP = "re_3Q9madeUp77";
  const CLAIM = `Refunded £180.00 GBP on order ORD-10042. Reference ${MADE_UP}. Confirmed by the provider.`;
  const REFUND = {
    order_reference: "ORD-10042",
    scope: "amount",
    item_references: [],
    amount_minor: 18_000,
    reason: `${CLAIM} See ${MADE_UP}.`,
  };

  /** Everything that anybody is shown: channels, threads and Home. */
  const shown = ({ world }: House, thread: { channel: string; ts: string }) => {
    const { control } = world.slack;
    return [
      ...[thread.channel, "C_APPR", "C_OPS"].flatMap((channel) => control.messages("U_ONC1", channel)),
      ...control.messages("U_ONC1", thread.channel, { threadTs: thread.ts }),
      ...["U_SUP1", "U_ONC1"].map((as) => ({ text: "", blocks: control.home(as).blocks })),
    ];
  };
  /** References of the provider's kind, beside the one that is made up. */
  const references = (messages: readonly Pick<MessageView, "text" | "blocks">[]): string[] => [
    ...new Set(
      messages
        .flatMap((one) => [one.text, ...textsOf(one.blocks)])
        .flatMap((one) => one.match(/\bre_\w+/g) ?? [])
        .filter((ref) => ref !== MADE_UP),
    ),
  ];

  it.each(["is refunded under another one", "is denied"])(
    "stays the model's word in every place, while what it claims %s",
    { timeout: LONG_MS },
    (end) =>
      play(
        byTurn(
          () => uses(text(CLAIM), use("get_order", { order_reference: "ORD-10042" })),
          () => uses(text(CLAIM), use("issue_refund", REFUND)),
          () => uses(text(CLAIM), use("escalate_to_human", { summary: CLAIM })),
        ),
        async (house) => {
          const { stage, world } = house;
          await stage.start();
          const thread = await stage.file("U_AGENT", "ORD-10042 of Tom Whitfield arrived torn.");
          await stage.confirmBinding(thread);
          if (end === "is denied") await stage.deny("U_SUP1", thread, "No damage.");
          else {
            world.payments.control.setWebhook(null);
            stage.fault({ kind: "commit_then_drop" });
            await stage.approve("U_SUP1", thread);
            await stage.operationIn("CONFIRMED");
          }
          await stage.runIn(thread, "escalated");
          await stage.until("the handover in the thread", async () =>
            stage.threadMessages(thread).some((one) => one.text.includes("Summary by")),
          );
          const messages = shown(house, thread);
          expect(messages.some((one) => JSON.stringify(one.blocks).includes(MADE_UP))).toBe(true);
          expect(messages.flatMap((one) => unmarked(one, [MADE_UP, "Confirmed by the provider"]))).toEqual(
            [],
          );
          const made = (await world.payments.control.effects()).map(({ id }) => id);
          expect(made).toHaveLength(end === "is denied" ? 0 : 1);
          expect(references(messages)).toEqual(made);
          const known = await house.db.sql<{ ref: string | null }>(
            undefined,
            "SELECT provider_ref AS ref FROM operations UNION SELECT provider_ref FROM attempts UNION SELECT provider_ref FROM provider_evidence",
          );
          expect(known.flatMap(({ ref }) => (ref === null ? [] : [ref]))).toEqual(made);
          await house.assertAuditIntact();
        },
      ),
  );
});
