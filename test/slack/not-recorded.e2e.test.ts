/** A click that cannot be recorded: the person reads so beside it, or sees Slack's own error. Never neither. */
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, test } from "vitest";
import { openDb } from "../../src/db/connect.js";
import { NOT_RECORDED } from "../../src/slack/inbox/gate.js";
import { INBOX_LEASE_MS, STORE_WITHIN } from "../../src/slack/inbox/store.js";
import { RECORDED_AFTER_ALL } from "../../src/slack/inbox/take-back.js";
import { startProxy, type TcpProxy } from "../support/proxy.js";
import { waitFor } from "../support/wait.js";
import { withCards } from "./support/cards.js";
import { hold } from "./support/held.js";
import { answers, readable } from "./support/see.js";
import { withoutDatabase } from "./support/without-database.js";
import type { World } from "./support/world.js";

const { database, start, inThread, cardIn, click, votes, says } = withCards();

/** Runs it with an address that stands in for Slack's response urls. */
async function withResponseUrl(answer: RequestListener, run: (url: string) => Promise<void>): Promise<void> {
  const server = createServer(answer);
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  try {
    await run(`http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks/actions/T_HOME/1/x`);
  } finally {
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  }
}

describe("while the database is away", () => {
  test("a click in a thread is answered there, where the person looks", async () => {
    const w = await start();
    const { ts } = await inThread(w);
    const card = await waitFor(() =>
      w.sandbox.control
        .messages("U_SUP1", "C_TICK", { threadTs: ts })
        .find((one) => readable(one).includes("Amount")),
    );
    await withoutDatabase(database.url, async () => {
      const at = { channel: "C_TICK", ts: card.ts };
      expect(await w.sandbox.control.click({ as: "U_SUP1", at, label: "Deny" })).toMatchObject({ ok: true });
    });
    const seen = w.sandbox.control.messages("U_SUP1", "C_TICK", { threadTs: ts, ephemeral: true });
    expect(seen.filter(({ ephemeral }) => ephemeral).map(({ text }) => text)).toEqual([NOT_RECORDED]);
  });

  const UNANSWERED: [string, RequestListener][] = [
    ["refuses it", (_req, res) => void res.writeHead(404).end()],
    ["does not answer", () => undefined],
  ];
  test.each(UNANSWERED)(
    "a click whose answer is lost, because Slack %s, is not acknowledged: the person sees Slack's own error",
    async (_how, answer) => {
      const w = await start();
      await withResponseUrl(answer, async (url) => {
        await withoutDatabase(database.url, async () => {
          const clicked = await w.sandbox.control.injectInteraction({
            type: "block_actions",
            user: { id: "U_SUP1", team_id: "T_HOME" },
            channel: { id: "C_APPR" },
            response_url: url,
            actions: [{ action_id: "approval.deny", value: "x", action_ts: "1.1" }],
          });
          expect(clicked).toMatchObject({ acked: false });
        });
      });
      expect(await database.db.sql(undefined, "SELECT 1 FROM slack_inbox WHERE kind = 'action'")).toEqual([]);
    },
  );
});

/** A world whose arrivals are stored through a network that a test can break. */
async function withNetwork(run: (w: World, network: TcpProxy) => Promise<void>): Promise<void> {
  const network = await startProxy(database.url);
  const arrivals = openDb({
    url: network.through(database.url),
    applicationName: "test-arrivals",
    ...STORE_WITHIN,
  });
  try {
    // A connection that stands already, as a process that has been up for a while has.
    await arrivals.sql("test.warm", "SELECT 1");
    await run(await start({ arrivals }), network);
  } finally {
    await network.stop();
    await arrivals.close();
  }
}

describe("a statement whose answer is lost", () => {
  const inbox = (): Promise<{ id: string }[]> => database.db.sql(undefined, "SELECT id FROM slack_inbox");
  const tickets = () => database.db.sql(undefined, "SELECT 1 FROM tickets");
  const leaseIsOver = (sinceMs: number) =>
    waitFor(() => performance.now() - sinceMs > INBOX_LEASE_MS + 1_500, { timeoutMs: 20_000 });
  const LOST: [string, (network: TcpProxy) => Promise<void>][] = [
    ["breaks", (network) => network.cut()],
    ["goes silent", async () => undefined],
  ];

  test.each(LOST)(
    "of a click, because the network %s, had stored it: it is taken back, as its person was told",
    async (_how, lose) => {
      await withNetwork(async (w, network) => {
        await hold(w);
        const card = await cardIn(w);
        const begun = performance.now();
        network.swallowAnswers();
        const clicked = click(w, "U_SUP1", card, "Approve");
        await waitFor(async () => (await inbox()).length === 1);
        await lose(network);
        expect(await clicked).toMatchObject({ ok: true });
        expect(performance.now() - begun).toBeLessThan(3_000);
        await says(w, "U_SUP1", NOT_RECORDED);
        await network.cut();
        await network.mend();
        await waitFor(async () => (await inbox()).length === 0);
        await leaseIsOver(begun);
        expect(await votes()).toEqual([]);
        expect(answers(w.sandbox, "U_SUP1", "C_APPR")).toEqual([NOT_RECORDED]);
      });
    },
    40_000,
  );

  test("of a click had stored it, and others carried it out before the network was there again: its person is told so", async () => {
    await withNetwork(async (w, network) => {
      await hold(w);
      const card = await cardIn(w);
      network.swallowAnswers();
      const clicked = click(w, "U_SUP1", card, "Approve");
      await waitFor(async () => (await inbox()).length === 1);
      await network.cut();
      expect(await clicked).toMatchObject({ ok: true });
      await says(w, "U_SUP1", NOT_RECORDED);
      await waitFor(async () => (await votes()).length === 1, { timeoutMs: 20_000 });
      await network.mend();
      const opened = await w.sandbox.control.openDm("U_SUP1");
      if (!opened.ok) throw new Error("no direct messages");
      const heard = () => w.sandbox.control.messages("U_SUP1", opened.channel).map(({ text }) => text);
      await waitFor(() => heard().includes(RECORDED_AFTER_ALL), { timeoutMs: 20_000 });
      expect(heard().filter((text) => text === RECORDED_AFTER_ALL)).toHaveLength(1);
      expect(await votes()).toHaveLength(1);
    });
  }, 60_000);

  test("of a form had stored it: sent again it counts, once", async () => {
    await withNetwork(async (w, network) => {
      await w.sandbox.control.command({ as: "U_AGENT", channel: "C_TICK", command: "/ticket", text: "" });
      const modal = await waitFor(() => w.sandbox.control.modals("U_AGENT")[0]);
      await waitFor(async () => (await inbox()).length === 1);
      const submit = () =>
        w.sandbox.control.submitView({
          as: "U_AGENT",
          viewId: modal.id,
          values: { text: "refund ORD-10042" },
        });
      const begun = performance.now();
      network.swallowAnswers();
      const submitted = submit();
      await waitFor(async () => (await inbox()).length === 2);
      await network.cut();
      expect(await submitted).toMatchObject({ ok: false, errors: { text: NOT_RECORDED } });
      await network.mend();
      expect(await submit()).toMatchObject({ ok: true });
      await waitFor(async () => (await tickets()).length === 1);
      await leaseIsOver(begun);
      expect(await tickets()).toHaveLength(1);
    });
  }, 40_000);
});
