/** Broken off at each place of the Slack room that has a name, and gone on with: everything happens once and in the end is shown. */
import { afterEach, describe, expect, test } from "vitest";
import {
  armFailpoint,
  disarmFailpoints,
  FAILPOINTS,
  type FailpointName,
} from "../../src/domain/failpoints.js";
import type { MessageView } from "../../src/sandbox/slack/index.js";
import { INBOX_LEASE_MS } from "../../src/slack/inbox/store.js";
import { LOOK_LEASE_MS } from "../../src/slack/outbox/lease.js";
import { withDatabase } from "../support/database.js";
import { type WaitOptions, waitFor } from "../support/wait.js";
import { hold } from "./support/held.js";
import { answers, readable } from "./support/see.js";
import { loadShop } from "./support/shop.js";
import { startWorld, type World } from "./support/world.js";

const database = withDatabase();
let world: World | undefined;

afterEach(async () => {
  disarmFailpoints();
  await world?.stop();
  world = undefined;
});

const OURS = FAILPOINTS.filter((name) => name.startsWith("slack."));
/** Each look asks the database; nothing here is in a hurry. */
const AT_LEISURE: WaitOptions = { timeoutMs: 50_000, everyMs: 250 };

/** Leases that have been held for three seconds belong to what was broken off: they end now instead of in half a minute. */
const LEASE_SECONDS = {
  slack_inbox: INBOX_LEASE_MS / 1_000,
  slack_outbox: LOOK_LEASE_MS / 1_000,
  slack_cards: LOOK_LEASE_MS / 1_000,
} as const;
const leasesEnd = async (): Promise<void> => {
  for (const [table, seconds] of Object.entries(LEASE_SECONDS)) {
    await database.db.sql(
      undefined,
      `UPDATE ${table} SET lease_until = NULL, due_at = countersign_now()
        WHERE lease_until < countersign_now() + make_interval(secs => ${seconds - 3})`,
    );
  }
};

function breakAt(name: FailpointName, atPass: number): () => number {
  let fired = 0;
  const action = () => {
    fired += 1;
    throw new Error(`broken off at ${name}`);
  };
  armFailpoint(name, action, { atPass });
  return () => fired;
}

const threadOf = (w: World, ts: string): MessageView[] =>
  w.sandbox.control.messages("U_AGENT", "C_TICK", { threadTs: ts }).slice(1);
const approvalCards = (w: World): MessageView[] => w.sandbox.control.messages("U_SUP1", "C_APPR");
const inboxOpen = async (): Promise<boolean> =>
  (await database.db.sql(undefined, "SELECT 1 FROM slack_inbox WHERE processed_at IS NULL")).length > 0;

async function story(w: World): Promise<{ ts: string }> {
  const posted = await w.sandbox.control.post({ as: "U_AGENT", channel: "C_TICK", text: "refund ORD-10042" });
  if (!posted.ok) throw new Error(posted.message);
  const { ts } = posted;
  await waitFor(async () => {
    await leasesEnd();
    return threadOf(w, ts).length >= 2 && !(await inboxOpen());
  }, AT_LEISURE);
  await hold(w);
  const card = await waitFor(async () => {
    await leasesEnd();
    return approvalCards(w).find((one) => readable(one).includes("Amount"));
  }, AT_LEISURE);
  const approve = () =>
    w.sandbox.control.click({ as: "U_SUP1", at: { channel: "C_APPR", ts: card.ts }, label: "Approve" });
  // Not acknowledged, Slack shows an error, and the person clicks again.
  if (!(await approve()).ok) await approve();
  await waitFor(async () => {
    await leasesEnd();
    const decided = approvalCards(w).some((one) => readable(one).includes("*Approved* by <@U_SUP1>"));
    return decided && answers(w.sandbox, "U_SUP1", "C_APPR").length > 0 && !(await inboxOpen());
  }, AT_LEISURE);
  return { ts };
}

describe.each(["socket", "http"] as const)("over %s", (mode) => {
  // What leaves is the same on both transports; what arrives is not.
  const names = mode === "http" ? OURS : OURS.filter((name) => !name.endsWith("_write"));
  const places = names.flatMap((name) => [1, 2].map((pass) => [name, pass] as const));

  test.each(places)(
    "at %s, pass %i",
    async (name, pass) => {
      await loadShop(database.db);
      const w = await startWorld({
        db: database.db,
        mode,
        sandbox: { clock: { scale: 100 }, settings: { socketRedeliveryMs: 200 } },
      });
      world = w;
      const fired = breakAt(name, pass);
      const { ts } = await story(w);
      expect(fired()).toBe(1);
      expect(await database.db.sql(undefined, "SELECT text FROM tickets")).toEqual([
        { text: "refund ORD-10042" },
      ]);
      expect(await database.db.sql(undefined, "SELECT user_id FROM votes")).toEqual([{ user_id: "U_SUP1" }]);
      const first = threadOf(w, ts).map((one) => readable(one).split("\n")[0] ?? "");
      expect(first).toHaveLength(2);
      expect(first).toContain("*Queued*");
      expect(approvalCards(w)).toHaveLength(1);
    },
    120_000,
  );
});
