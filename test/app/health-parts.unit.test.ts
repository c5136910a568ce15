/** Health says of the provider's list of everything whether it can be read: what only that list shows would not be found. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { providerParts } from "../../src/app/compose/health-parts.js";
import { systemClock } from "../../src/app/system.js";
import { createPayments, type Payments } from "../../src/payments/index.js";

const HOUR = 3_600_000;
let server: Server;
let provider: Payments;
/** How the list of everything is answered; one refund of any kind always is. */
let everything: (query: URLSearchParams, res: ServerResponse) => void;
let asked: URLSearchParams[];

const send = (res: ServerResponse, status: number, body: object): void => {
  res.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
};
const EMPTY = { object: "list", url: "/v1/refunds", has_more: false, data: [] };

beforeAll(async () => {
  server = createServer((req: IncomingMessage, res: ServerResponse) => {
    const query = new URL(req.url ?? "/", "http://localhost").searchParams;
    if (query.get("created[gte]") === null) return send(res, 200, EMPTY);
    asked.push(query);
    everything(query, res);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  provider = createPayments({
    secretKey: "sk_test_1",
    apiUrl: `http://127.0.0.1:${port}`,
    clock: systemClock,
  });
});
beforeEach(() => {
  asked = [];
  everything = (_query, res) => send(res, 200, EMPTY);
});
afterAll(async () => {
  await provider.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const parts = () => providerParts(provider, { clock: systemClock, windowMs: 48 * HOUR });

describe("the provider's list of everything", () => {
  it("that can be read is well, and is asked for over the time that the sweep compares", async () => {
    expect(await parts()).toEqual([
      { name: "payments", ok: true, sentence: "The payment provider answers." },
      { name: "books", ok: true, sentence: "The provider's list of everything can be read." },
    ]);
    const since = Number(asked[0]?.get("created[gte]")) * 1000;
    expect(Math.abs(Date.now() - 48 * HOUR - since)).toBeLessThan(60_000);
  });

  it.each([
    ["refused", 403, { error: { type: "invalid_request_error", message: "This key may not list." } }],
    ["unreadable", 200, { ...EMPTY, data: [{ object: "refund", id: 7 }] }],
  ])(
    "that is %s is not, although single refunds are read, and what that means is said",
    async (_how, status, body) => {
      everything = (_query, res) => send(res, status, body);
      const [payments, books] = await parts();
      expect(payments).toMatchObject({ name: "payments", ok: true });
      expect(books).toMatchObject({ name: "books", ok: false });
      expect(books?.sentence).toMatch(
        /^The provider's list of everything cannot be read: .+\. What was made there and is not ours would not be found; known payments are read one by one\.$/u,
      );
    },
  );

  it("that is long is left to the worker, and nobody waits for its end", async () => {
    let page = 0;
    everything = (_query, res) => {
      page += 1;
      const id = `re_${String(page).padStart(8, "0")}`;
      const refund = {
        object: "refund",
        id,
        amount: 1,
        currency: "gbp",
        status: "succeeded",
        payment_intent: "pi_1",
        created: 1,
        metadata: {},
      };
      setTimeout(() => send(res, 200, { ...EMPTY, has_more: page < 40, data: [refund] }), 100);
    };
    const [, books] = await parts();
    expect(books).toMatchObject({
      ok: true,
      sentence: expect.stringContaining("was not at its end after 2.5 s"),
    });
  });
});
