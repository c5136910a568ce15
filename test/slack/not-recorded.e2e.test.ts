/** A click that cannot be recorded: the person reads so beside it, or sees Slack's own error. Never neither. */
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, test } from "vitest";
import { NOT_RECORDED } from "../../src/slack/inbox/gate.js";
import { waitFor } from "../support/wait.js";
import { withCards } from "./support/cards.js";
import { readable } from "./support/see.js";
import { withoutDatabase } from "./support/without-database.js";

const { database, start, inThread } = withCards();

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
