/** On-call's commands and cards, through the real Bolt app. */
import { afterEach, describe, expect, test } from "vitest";
import type { Evidence } from "../../src/domain/evidence.js";
import { openIncident } from "../../src/ledger/index.js";
import type { MessageView } from "../../src/sandbox/slack/index.js";
import { outcomePost } from "../../src/slack/cards/posts.js";
import { readOperation } from "../../src/slack/views/operation.js";
import { withDatabase } from "../support/database.js";
import { waitFor } from "../support/wait.js";
import { type Held, hold } from "./support/held.js";
import { quarantined } from "./support/quarantined.js";
import { answers, readable } from "./support/see.js";
import { loadShop } from "./support/shop.js";
import { startWorld, type World, type WorldOptions } from "./support/world.js";

const database = withDatabase();
let world: World | undefined;

afterEach(async () => {
  await world?.stop();
  world = undefined;
});

async function start(options: Partial<WorldOptions> = {}): Promise<World> {
  await loadShop(database.db);
  world = await startWorld({ db: database.db, mode: "http", ...options });
  return world;
}

const ops = async (w: World, as: string, text: string): Promise<void> => {
  const done = await w.sandbox.control.command({ as, channel: "C_OPS", command: "/ops", text });
  if (!done.ok) throw new Error(done.message);
};
const says = (w: World, as: string, text: string | RegExp) =>
  waitFor(
    () =>
      answers(w.sandbox, as, "C_OPS").find((one) =>
        typeof text === "string" ? one.includes(text) : text.test(one),
      ),
    {
      what: `"${String(text)}" to ${as}`,
    },
  );
const opsMessages = (w: World): MessageView[] => w.sandbox.control.messages("U_ONC1", "C_OPS");
const status = async (held: Held): Promise<string | undefined> =>
  (
    await database.db.sql<{ status: string }>(undefined, "SELECT status FROM operations WHERE id = $1", [
      held.operationId,
    ])
  )[0]?.status;

const committed = (held: Held): Evidence => ({
  says: "committed",
  postcondition: "holds",
  effect: {
    ref: "re_42",
    kind: "refund",
    target: "pi_ORD-10042",
    amountMinor: 18_000n,
    currency: "GBP",
    status: "succeeded",
    pendingReason: null,
    failureReason: null,
    operationId: held.operationId,
    createdAt: new Date("2026-11-29T12:00:00Z"),
  },
});

describe("/ops", () => {
  test.each(["list", "help", "health", "freeze", "show op_1", "nonsense"])(
    "%s by somebody who is not on call shows nothing and says why",
    async (command) => {
      const w = await start();
      await w.sandbox.control.setMember("C_OPS", "U_SUP1", true);
      await hold(w);
      await ops(w, "U_SUP1", command);
      const answer = await says(w, "U_SUP1", /role oncall/);
      expect(answer).not.toContain("op_");
      expect(answer).not.toContain("/ops list");
      expect(await database.db.sql(undefined, "SELECT 1 FROM freeze_switches WHERE frozen")).toEqual([]);
    },
  );

  test("help teaches, list lists with counts, show explains, events tells the story", async () => {
    const w = await start();
    const held = await quarantined(w);
    await ops(w, "U_ONC1", "help");
    await says(w, "U_ONC1", "/ops show ID");
    await ops(w, "U_ONC1", "list");
    await says(w, "U_ONC1", new RegExp(`Open: 1 quarantined\\.[\\s\\S]*${held.operationId}`));
    await ops(w, "U_ONC1", `show ${held.operationId.slice(0, 20)}`);
    const shown = await says(w, "U_ONC1", "What recovery is allowed, and why");
    for (const part of ["£180.00 GBP", "ORD-10042", "attempt 1", "(timeout)", "What a person may do now"])
      expect(shown).toContain(part);
    await ops(w, "U_ONC1", `events ${held.operationId}`);
    await says(w, "U_ONC1", "Timeline");
    await ops(w, "U_ONC1", "show ord-10042");
    expect(await says(w, "U_ONC1", "What recovery is allowed, and why")).toContain(held.operationId);
    await ops(w, "U_ONC1", "confirm ord-10042");
    const form = await waitFor(() => w.sandbox.control.modals("U_ONC1")[0], {
      what: "the form of the order",
    });
    expect(readable({ text: "", blocks: form.blocks })).toContain("£180.00 GBP");
    await w.sandbox.control.closeView({ as: "U_ONC1", viewId: form.id });
    await ops(w, "U_ONC1", "reopen ord-10042");
    // The order's only operation is meant, and what is said is why the verb does not fit it.
    await says(w, "U_ONC1", "Only what a person has confirmed or rejected can be opened again.");
    await ops(w, "U_ONC1", "freeze provider broken");
    await says(w, "U_ONC1", /^Nothing was frozen\. “provider” is no kind of effect/);
  });

  test("an id that names none is quoted, with where to look; one that names several lists what each is", async () => {
    const w = await start();
    const first = await quarantined(w);
    const second = await hold(w, { orderRef: "ORD-8", amountMinor: 5_000n });
    await ops(w, "U_ONC1", "close inc_nope");
    await says(w, "U_ONC1", /“inc_nope” is no incident id: .*\/ops incidents lists the open ones\./);
    await ops(w, "U_ONC1", "show op_nope");
    await says(w, "U_ONC1", /“op_nope” is no operation id: .*\/ops list shows the newest ones\./);
    const common = first.operationId.slice(0, 8);
    expect(second.operationId.startsWith(common)).toBe(true);
    await ops(w, "U_ONC1", `confirm ${common}`);
    const said = await says(w, "U_ONC1", `2 operations begin with “${common}”; add a few characters.`);
    expect(said).toMatch(new RegExp(`${first.operationId}\`? quarantined · refund £180\\.00 GBP ORD-10042`));
    expect(said).toMatch(
      new RegExp(`${second.operationId}\`? awaiting approval · refund £50\\.00 GBP ORD-8`),
    );
  });

  test("reads curly quotes, non-breaking blanks and long dashes, and answers bad words with a suggestion", async () => {
    const w = await start();
    const held = await hold(w);
    await ops(w, "U_ONC1", `show\u00a0\u201c${held.operationId}\u201d`);
    await says(w, "U_ONC1", "What recovery is allowed");
    await ops(w, "U_ONC1", "shwo op_1");
    await says(w, "U_ONC1", /Did you mean/);
    await ops(w, "U_ONC1", "show op_00000000000000000000000000000000");
    await says(w, "U_ONC1", /no operation|names nothing|not found/i);
  });

  test("freeze stops, says so in the channel, and is thawed only with another person", async () => {
    const w = await start();
    await ops(w, "U_ONC1", "freeze refund");
    await says(w, "U_ONC1", /Frozen: refund operations/);
    await waitFor(() =>
      opsMessages(w).some((one) => readable(one).includes("*Frozen: refund operations* by <@U_ONC1>")),
    );
    await w.drain();
    expect(opsMessages(w), "one message tells of the freeze; nothing is still frozen yet").toHaveLength(1);
    await ops(w, "U_ONC1", "thaw refund");
    const card = await waitFor(() =>
      opsMessages(w).find((one) => readable(one).includes("A second person is needed")),
    );
    await w.sandbox.control.click({ as: "U_ONC1", at: { channel: "C_OPS", ts: card.ts }, label: "Agree" });
    await waitFor(() => answers(w.sandbox, "U_ONC1", "C_OPS").length >= 3);
    expect(await database.db.sql(undefined, "SELECT kind FROM freeze_switches WHERE frozen")).toEqual([
      { kind: "refund" },
    ]);
    await w.sandbox.control.click({ as: "U_ONC2", at: { channel: "C_OPS", ts: card.ts }, label: "Agree" });
    await says(w, "U_ONC2", "Thawed: refund operations");
    await waitFor(() =>
      opsMessages(w).some((one) =>
        readable(one).includes("*Thawed: refund operations* asked by <@U_ONC1>, agreed by <@U_ONC2>."),
      ),
    );
    await waitFor(() => !opsMessages(w).some((one) => readable(one).includes("Disagree")));
    await waitFor(() =>
      opsMessages(w).some((one) =>
        readable(one).includes(
          "It was asked here whether to thaw refund operations. Asked by <@U_ONC1>, agreed by <@U_ONC2>.",
        ),
      ),
    );
  });
});

describe("a quarantine card", () => {
  const cardOf = (w: World): Promise<MessageView> =>
    waitFor(() => opsMessages(w).find((one) => readable(one).includes("Confirm committed")));
  const openForm = async (w: World, as: string, card: MessageView, label: string) => {
    await w.sandbox.control.click({ as, at: { channel: "C_OPS", ts: card.ts }, label });
    return waitFor(() => w.sandbox.control.modals(as)[0], { what: `the form of ${label}` });
  };

  test("names the three verbs; Confirm asks for a reason and evidence and closes it everywhere", async () => {
    let held: Held | undefined;
    const w = await start({
      probe: () => (held === undefined ? { says: "unknown", reason: "no" } : committed(held)),
    });
    held = await quarantined(w);
    const card = await cardOf(w);
    expect(readable(card)).toContain("The outcome stayed unknown for an hour.");
    const form = await openForm(w, "U_ONC1", card, "Confirm committed");
    expect(
      form.blocks.flatMap((block) =>
        block.type === "input" ? [(block["label"] as { text: string }).text] : [],
      ),
    ).toEqual(["Reason", "Evidence"]);
    const submit = (values: Record<string, string>) =>
      w.sandbox.control.submitView({ as: "U_ONC1", viewId: form.id, values });
    expect(await submit({ reason: "  ", evidence: "re_42" })).toMatchObject({ ok: false });
    expect(await submit({ Reason: "seen in the dashboard", Evidence: "re_42" })).toMatchObject({ ok: true });
    await waitFor(async () => (await status(held as Held)) === "CONFIRMED");
    const closed = await waitFor(() =>
      opsMessages(w).find(
        (one) => one.ts === card.ts && /£180\.00 GBP[\s\S]*Refunded\b/u.test(readable(one)),
      ),
    );
    expect(readable(closed)).not.toContain("Authorise retry");
    await says(w, "U_ONC1", /re_42|recorded|answered the question itself/);
  });

  test("is not for those who filed, nor for those who approved; they are told why", async () => {
    const w = await start();
    w.policy = {
      ...w.policy,
      roles: { ...w.policy.roles, oncall: { usergroups: [], users: ["U_ONC1", "U_ONC2", "U_SUP1"] } },
    };
    await quarantined(w, { filers: ["U_ONC1"] });
    await w.sandbox.control.setMember("C_OPS", "U_SUP1", true);
    const card = await cardOf(w);
    for (const user of ["U_ONC1", "U_SUP1"]) {
      await w.sandbox.control.click({
        as: user,
        at: { channel: "C_OPS", ts: card.ts },
        label: "Confirm committed",
      });
      await says(w, user, /somebody else must/);
      expect(w.sandbox.control.modals(user)).toEqual([]);
    }
  });

  test("asks a second person where two are needed; the first cannot agree with themselves", async () => {
    const w = await start({ probe: () => ({ says: "absent" }) });
    const held = await quarantined(w, { amountMinor: 45_000n });
    const card = await cardOf(w);
    const form = await openForm(w, "U_ONC1", card, "Reject");
    expect(
      await w.sandbox.control.submitView({
        as: "U_ONC1",
        viewId: form.id,
        values: { reason: "not in the dashboard", evidence: "screenshot 7" },
      }),
    ).toMatchObject({ ok: true });
    const second = await waitFor(() =>
      opsMessages(w).find((one) => readable(one).includes("A second person is needed: reject")),
    );
    const at = { channel: "C_OPS", ts: second.ts };
    await w.sandbox.control.click({ as: "U_ONC1", at, label: "Agree" });
    await says(w, "U_ONC1", /second person|somebody else|yourself/);
    expect(await status(held)).toBe("QUARANTINED");
    await w.sandbox.control.click({ as: "U_ONC2", at, label: "Agree" });
    await waitFor(async () => (await status(held)) === "REJECTED");
    await waitFor(() => !opsMessages(w).some((one) => /Disagree|Authorise retry/.test(readable(one))));
  });

  test("disagreed with twice at once: the other click reads that it was answered, by whom, and not that it is settled", async () => {
    const w = await start({ probe: () => ({ says: "absent" }) });
    const held = await quarantined(w, { amountMinor: 45_000n });
    const form = await openForm(w, "U_ONC1", await cardOf(w), "Reject");
    const values = { reason: "not in the dashboard", evidence: "screenshot 7" };
    await w.sandbox.control.submitView({ as: "U_ONC1", viewId: form.id, values });
    const second = await waitFor(() =>
      opsMessages(w).find((one) => readable(one).includes("A second person is needed: reject")),
    );
    const disagree = { as: "U_ONC2", at: { channel: "C_OPS", ts: second.ts }, label: "Disagree" };
    await Promise.all([w.sandbox.control.click(disagree), w.sandbox.control.click(disagree)]);
    await says(w, "U_ONC2", "Recorded that you disagree");
    await says(
      w,
      "U_ONC2",
      /^It was answered meanwhile by <@U_ONC2>, .+\. This request was turned down already\.$/u,
    );
    expect(await status(held)).toBe("QUARANTINED");
  });

  test("settled by a person has a button that opens it again, by a form, with a record in the channel", async () => {
    const w = await start({ probe: () => ({ says: "absent" }) });
    const held = await quarantined(w);
    const card = await cardOf(w);
    const confirm = await openForm(w, "U_ONC1", card, "Confirm committed");
    await w.sandbox.control.submitView({
      as: "U_ONC1",
      viewId: confirm.id,
      values: { reason: "seen", evidence: "re_42" },
    });
    await waitFor(async () => (await status(held)) === "CONFIRMED");
    const settled = await waitFor(() =>
      opsMessages(w).find((one) => one.ts === card.ts && readable(one).includes("Open again")),
    );
    expect(readable(settled)).not.toContain("Authorise retry");
    const word = "by on-call's word alone: the provider did not show it. Reference given: re_42.";
    // The reference has a row of its own there.
    expect(readable(settled)).toContain("by on-call's word alone: the provider did not show it.");
    await waitFor(() =>
      opsMessages(w).find(
        (one) => readable(one).includes("Confirm committed* by <@U_ONC1>") && readable(one).includes(word),
      ),
    );
    const row = await readOperation(w.db, held.operationId);
    expect(row === null ? "" : outcomePost(row).text).toContain(`${word} Confirmed by <@U_ONC1>.`);
    await ops(w, "U_ONC1", `reopen ${held.operationId.slice(0, 20)}`);
    const asked = await waitFor(() => w.sandbox.control.modals("U_ONC1")[0]);
    expect(readable({ text: "", blocks: asked.blocks })).toContain("nothing is sent by this");
    const form = await openForm(w, "U_ONC2", settled, "Open again");
    expect(
      await w.sandbox.control.submitView({
        as: "U_ONC2",
        viewId: form.id,
        values: { reason: "that was another refund", evidence: "note 7" },
      }),
    ).toMatchObject({ ok: true });
    await waitFor(async () => (await status(held)) === "QUARANTINED");
    await waitFor(() =>
      opsMessages(w).some((one) =>
        /Open again\*? by <@U_ONC2>[\s\S]*that was another refund/.test(readable(one)),
      ),
    );
    await waitFor(
      () => opsMessages(w).filter((one) => readable(one).includes("Authorise retry")).length === 1,
      { what: "one open card" },
    );
    await w.sandbox.control.submitView({
      as: "U_ONC1",
      viewId: asked.id,
      values: { reason: "me too", evidence: "note 8" },
    });
    await says(w, "U_ONC1", /Only what a person has confirmed or rejected/);
  });

  const shownIn = (w: World, as: string): string =>
    readable({ text: "", blocks: w.sandbox.control.modals(as)[0]?.blocks ?? [] });

  test.each([
    ["Confirm committed", "it rests on your word alone"],
    ["Reject", "The provider is asked once more before anything is written"],
  ])("%s shows what the provider says now before anything is typed", async (label, consequence) => {
    const w = await start({ probe: () => ({ says: "absent" }) });
    await quarantined(w);
    await openForm(w, "U_ONC1", await cardOf(w), label);
    expect(shownIn(w, "U_ONC1")).toContain("The provider shows nothing of it now.");
    expect(shownIn(w, "U_ONC1")).toContain(consequence);
  });

  test("whose provider answers late says so, and its answer comes into the open form", async () => {
    let answer: () => void = () => {};
    const late = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const sentence = "The provider shows it: re_42 of £180.00 GBP (succeeded).";
    const w = await start({
      ops: {
        askProvider: async () => {
          await late;
          return { outcome: "asked", probe: { says: "committed", providerRef: "re_42", sentence } };
        },
      },
    });
    await quarantined(w);
    await openForm(w, "U_ONC1", await cardOf(w), "Reject");
    expect(shownIn(w, "U_ONC1")).toContain("It is being asked; the answer comes here.");
    answer();
    await waitFor(() => shownIn(w, "U_ONC1").includes(sentence));
    expect(shownIn(w, "U_ONC1")).not.toContain("It is being asked");
  });

  test("Reject while the provider cannot be asked: the form stays with the reason, and names the cause once", async () => {
    const w = await start({
      probe: () => ({ says: "unknown", reason: "http_500: The provider answered with HTTP 500." }),
    });
    const held = await quarantined(w);
    const form = await openForm(w, "U_ONC1", await cardOf(w), "Reject");
    const cause = "The provider could not be asked: it answered with HTTP 500.";
    expect(shownIn(w, "U_ONC1")).toContain(cause);
    const values = { reason: "not in the dashboard", evidence: "screenshot 7" };
    const answer = await w.sandbox.control.submitView({ as: "U_ONC1", viewId: form.id, values });
    expect(answer).toMatchObject({ ok: false });
    expect(JSON.stringify(answer)).toContain(cause);
    expect(w.sandbox.control.modals("U_ONC1").map(({ id }) => id)).toEqual([form.id]);
    expect(await status(held)).toBe("QUARANTINED");
  });

  test("a made-up reference is the person's own in every place, also when its end is taken back and rejected", async () => {
    const w = await start({ probe: () => ({ says: "absent" }) });
    const held = await quarantined(w);
    const submit = async (as: string, label: string, values: Record<string, string>) => {
      const card = await waitFor(() => opsMessages(w).findLast((one) => readable(one).includes(label)));
      const form = await openForm(w, as, card, label);
      expect(await w.sandbox.control.submitView({ as, viewId: form.id, values })).toMatchObject({ ok: true });
    };
    await submit("U_ONC1", "Confirm committed", { reason: "seen", evidence: "re_doesnotexist" });
    await waitFor(async () => (await status(held)) === "CONFIRMED");
    await submit("U_ONC2", "Open again", { reason: "wrong", evidence: "note 7" });
    await waitFor(async () => (await status(held)) === "QUARANTINED");
    const card = await waitFor(() =>
      opsMessages(w).findLast((one) => readable(one).includes("Authorise retry")),
    );
    expect(readable(card)).toContain("Reference given");
    expect(readable(card)).not.toContain("Provider reference");
    await ops(w, "U_ONC1", `show ${held.operationId}`);
    const show = await says(w, "U_ONC1", /re_doesnotexist/);
    expect(show).toContain("Reference given");
    expect(show).not.toContain("Provider reference");
    const row = await readOperation(w.db, held.operationId);
    expect(row).toMatchObject({ providerRef: "re_doesnotexist", referenceGiven: true });
  });

  test("whose form takes longer than Slack waits answers by a message", async () => {
    let release: () => void = () => {};
    const slow = new Promise<void>((resolve) => {
      release = resolve;
    });
    const w = await start({
      ops: {
        resolve: async () => {
          await slow;
          return { outcome: "refused", reason: "x", sentence: "It took long, and then no." };
        },
      },
    });
    await quarantined(w);
    const form = await openForm(w, "U_ONC1", await cardOf(w), "Confirm committed");
    expect(
      await w.sandbox.control.submitView({
        as: "U_ONC1",
        viewId: form.id,
        values: { reason: "a", evidence: "b" },
      }),
    ).toMatchObject({ ok: true });
    expect(readable({ text: "", blocks: w.sandbox.control.modals("U_ONC1")[0]?.blocks ?? [] })).toContain(
      "the answer comes as a message",
    );
    release();
    await says(w, "U_ONC1", "It took long, and then no.");
  });
});

describe("an incident", () => {
  test("has a card that says what it means, once, and closes", async () => {
    const w = await start();
    const held = await hold(w);
    await w.db.tx(async (tx) => {
      await tx.sql(
        undefined,
        "INSERT INTO incidents (id, kind, dedupe_key, operation_id, detail) VALUES ('inc_1', 'duplicate_effect', 'k', $1, $2::jsonb)",
        [held.operationId, JSON.stringify({ providerRefs: "re_1, re_2", note: "<!channel>" })],
      );
      await w.notices.touch(tx, { kind: "incident", id: "inc_1" });
    });
    const card = await waitFor(() =>
      opsMessages(w).find((one) => readable(one).includes("Incident: duplicate effect")),
    );
    expect(readable(card)).toContain("more than one effect for one operation");
    expect(readable(card)).toContain("re_1, re_2");
    expect(card.mentionsMe).toBe(false);
  });
});

describe("an incident is closed", () => {
  const open = async (w: World): Promise<string> =>
    (
      await w.db.tx((tx) =>
        openIncident(
          tx,
          { ids: w.ctx.ids, notices: w.notices },
          {
            kind: "orphan_effect",
            dedupeKey: "k",
            operationId: null,
            paymentId: null,
            detail: { ref: "re_9" },
          },
        ),
      )
    ).id;

  test("by its card's button with a reason, by name, and its card says so without a button", async () => {
    const w = await start();
    const id = await open(w);
    const card = await waitFor(() => opsMessages(w).find((one) => readable(one).includes(id)));
    await w.sandbox.control.setMember("C_OPS", "U_SUP1", true);
    const at = { channel: "C_OPS", ts: card.ts };
    await w.sandbox.control.click({ as: "U_SUP1", at, label: "Close" });
    await says(w, "U_SUP1", /role oncall/);
    await w.sandbox.control.click({ as: "U_ONC1", at, label: "Close" });
    const form = await waitFor(() => w.sandbox.control.modals("U_ONC1")[0]);
    const submit = (reason: string) =>
      w.sandbox.control.submitView({ as: "U_ONC1", viewId: form.id, values: { reason } });
    expect(await submit(" ")).toMatchObject({ ok: false });
    expect(await submit("a dashboard refund by finance")).toMatchObject({ ok: true });
    const closed = await waitFor(() =>
      opsMessages(w).find((one) => one.ts === card.ts && readable(one).includes("Closed by <@U_ONC1>")),
    );
    expect(readable(closed)).toContain("Reason: a dashboard refund by finance");
    expect(closed.blocks?.some((block) => block.type === "actions")).toBe(false);
  });

  test("by /ops close behind /ops incidents; closing it again tells who did", async () => {
    const w = await start();
    const id = await open(w);
    await ops(w, "U_ONC1", "incidents");
    await says(w, "U_ONC1", new RegExp(`Open incidents[\\s\\S]*${id}`));
    await ops(w, "U_ONC1", `close ${id.slice(0, 24)}`);
    const form = await waitFor(() => w.sandbox.control.modals("U_ONC1")[0]);
    await w.sandbox.control.submitView({ as: "U_ONC1", viewId: form.id, values: { reason: "known" } });
    await says(w, "U_ONC1", "Closed: Effect without an operation");
    await ops(w, "U_ONC2", `close ${id}`);
    await says(w, "U_ONC2", /closed already by <@U_ONC1>[\s\S]*Reason: known/);
    await ops(w, "U_ONC2", "incidents");
    await says(w, "U_ONC2", "No incident is open.");
  });
});

describe("Home of on-call", () => {
  test("shows what is quarantined and frozen", async () => {
    const w = await start();
    const held = await quarantined(w);
    await ops(w, "U_ONC1", "freeze all");
    await says(w, "U_ONC1", "Frozen: everything");
    await w.sandbox.control.openHome({ as: "U_ONC2" });
    const home = await waitFor(() => {
      const text = readable({ text: "", blocks: w.sandbox.control.home("U_ONC2").blocks });
      return text.includes("On-call") ? text : null;
    });
    expect(home).toContain(held.operationId);
    expect(home).toContain("*everything* frozen by <@U_ONC1>");
  });
});
