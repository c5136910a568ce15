/**
 * How long a list may take: a payment's list is read within a lease and has one time for all of its pages, the whole account's has a time
 * for each page, since a busy shop has more pages than any one time allows.
 */
import { createServer, type Server } from "node:http";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createPayments, type Payments } from "../../src/payments/index.js";

const PAGES = 4;
/** Of each page; all of them together take longer than the time that is given. */
const ANSWER_AFTER_MS = 400;
const TIMEOUT_MS = 1_500;

let server: Server;
let payments: Payments;
/** Pages asked for, by what they start after. */
let asked: (string | null)[];
/** The page that is never answered. */
let silent: number | null;
/** A list without an end: this many refunds on each page, whatever was asked for. */
let endless: number | null;

beforeEach(async () => {
  asked = [];
  silent = null;
  endless = null;
  server = createServer((request, answer) => {
    const after = new URL(request.url ?? "/", "http://stub").searchParams.get("starting_after");
    asked.push(after);
    const page = after === null ? 1 : Number(after.slice("re_".length)) + 1;
    if (page === silent) return;
    if (endless !== null) {
      const many = endless;
      const data = Array.from({ length: many }, (_, n) => refund(`${(asked.length - 1) * many + n}`));
      answer.end(JSON.stringify({ object: "list", has_more: true, data }));
      return;
    }
    setTimeout(() => {
      answer.setHeader("content-type", "application/json");
      answer.end(
        JSON.stringify({
          object: "list",
          url: "/v1/refunds",
          has_more: page < PAGES,
          data: [refund(page)],
        }),
      );
    }, ANSWER_AFTER_MS);
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  payments = createPayments({
    secretKey: "sk_test_stub",
    apiUrl: `http://127.0.0.1:${port()}`,
    clock: { now: () => new Date("2026-11-29T12:00:00Z") },
  });
});

afterEach(async () => {
  server.closeAllConnections();
  await payments.close();
  await new Promise<void>((done) => server.close(() => done()));
});

function port(): number {
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the stub has no port");
  return address.port;
}

const refund = (page: number | string): object => ({
  id: `re_${page}`,
  object: "refund",
  amount: 100,
  currency: "gbp",
  status: "succeeded",
  payment_intent: "pi_1",
  metadata: {},
  created: 1_796_000_000,
});

describe("the time of a list", () => {
  test("of the whole account is for each page: more pages than fit into one are read to the last", async () => {
    const listing = await payments.listSince(new Date(0), { timeoutMs: TIMEOUT_MS });
    expect(listing).toMatchObject({ read: "complete" });
    expect(listing.read === "complete" && listing.effects.map(({ ref }) => ref)).toEqual([
      "re_1",
      "re_2",
      "re_3",
      "re_4",
    ]);
    expect(asked).toEqual([null, "re_1", "re_2", "re_3"]);
  });

  test("a page of it that is never answered fails the whole list", async () => {
    silent = 3;
    expect(await payments.listSince(new Date(0), { timeoutMs: TIMEOUT_MS })).toMatchObject({
      read: "failed",
      reason: "timeout",
    });
    expect(asked).toEqual([null, "re_1", "re_2"]);
  });

  test("of one payment is for all pages together: it ends within it", async () => {
    const target = { paymentIntent: "pi_1", providerSubscription: null };
    expect(await payments.list(target, { timeoutMs: TIMEOUT_MS })).toMatchObject({
      read: "failed",
      reason: "timeout",
    });
  });
});

test("a list without an end, of pages larger than asked for, is given up long before memory is", async () => {
  endless = 30_000;
  expect(await payments.listSince(new Date(0), { timeoutMs: 30_000 })).toMatchObject({
    read: "failed",
    reason: "pagination",
  });
  expect(asked).toHaveLength(4);
});
