/** Ways to misbehave on the payments wire that no list of faults names, each with the ends that are true. */
import { gzipSync } from "node:zlib";
import type { Heard, Manners, WireRefund } from "./provider.js";

/** `C` confirmed, `R` rejected, `V` voided, `Q` with a person. */
export type End = "C" | "R" | "V" | "Q";

export interface Misbehaviour {
  readonly what: string;
  readonly manners: Manners;
  /** Every end that is true; a person only where nothing else could be. */
  readonly ends: readonly End[];
  /** Milliseconds for one call, where the misbehaviour is slowness. */
  readonly timeoutMs?: number;
}

type Answering = (heard: Heard) => unknown;

const raw = ({ answer }: Heard, ...chunks: readonly (string | Buffer)[]): void => {
  const { socket } = answer;
  for (const chunk of chunks) socket?.write(chunk);
};
const cut = (heard: Heard): void => void heard.answer.socket?.destroy();
const body = (refund: WireRefund | null): string => JSON.stringify(refund);
const head = (length: number, more = ""): string =>
  `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n${more}\r\n`;
const envelope = (type: string, code: string | null = null): object => ({
  error: { type, message: "Something is wrong.", ...(code === null ? {} : { code }) },
});
/** Only the first answer is bad. */
const once =
  (bad: Answering): Answering =>
  (heard) =>
    heard.nth === 1 ? bad(heard) : heard.usual();
/** Every answer is bad: what happened is only to be read. */
const always = (bad: Answering): Answering => bad;
const altered =
  (change: Record<string, unknown>): Answering =>
  ({ json, refund }) =>
    json(200, { ...refund, ...change });
const without =
  (field: string): Answering =>
  ({ json, refund }) =>
    json(200, Object.fromEntries(Object.entries(refund ?? {}).filter(([name]) => name !== field)));
const list = (heard: Heard, data: readonly unknown[], hasMore: boolean): void =>
  heard.json(200, { object: "list", has_more: hasMore, data });
/** The answer is lost, and then the list misbehaves. */
const lostAnd = (reading: Answering): Manners => ({ post: once(cut), list: reading });

const READ_BACK: readonly End[] = ["C"];
const PERSON: readonly End[] = ["Q"];

const STATUSES: readonly Misbehaviour[] = [408, 409, 418, 421, 424, 425, 451, 500, 502, 503, 504, 529].map(
  (status) => ({
    what: `committed, and answered with ${status}`,
    manners: { post: once(({ json }) => json(status, envelope("api_error"))) },
    ends: READ_BACK,
  }),
);

const REFUSALS: readonly Misbehaviour[] = [400, 402, 403, 404].map((status) => ({
  what: `refused with ${status}, for good`,
  manners: {
    commits: false,
    post: ({ json }) => json(status, envelope("invalid_request_error", "charge_not_refundable")),
  },
  ends: ["R"],
}));

export const MISBEHAVIOURS: readonly Misbehaviour[] = [
  ...STATUSES,
  ...REFUSALS,
  {
    what: "committed, and a proxy answers 403 in its own words",
    manners: {
      post: once(({ answer }) => answer.writeHead(403, { "content-type": "text/html" }).end("<h1>403</h1>")),
    },
    ends: READ_BACK,
  },
  {
    what: "too busy (429) five times, with a Retry-After of 1",
    manners: {
      commits: (nth) => nth > 5,
      post: ({ nth, json, usual }) =>
        nth > 5 ? usual() : json(429, envelope("rate_limit_error"), { "retry-after": "1" }),
    },
    ends: ["C"],
  },
  {
    what: "an answer lost, nothing done, and too busy (429) for a quarter of an hour",
    manners: {
      commits: (nth) => nth > 9,
      post: (heard) => {
        if (heard.nth === 1) cut(heard);
        else if (heard.nth > 9) heard.usual();
        else heard.json(429, envelope("rate_limit_error"), { "retry-after": "1" });
      },
    },
    ends: ["C"],
  },
  {
    what: "429 by a proxy, though committed",
    manners: { post: once(({ answer }) => answer.writeHead(429).end("slow down")) },
    ends: READ_BACK,
  },
  ...[301, 302, 303, 307, 308].map(
    (status): Misbehaviour => ({
      what: `committed, and redirected with ${status}`,
      manners: {
        post: once(({ answer }) => answer.writeHead(status, { location: "/v1/refunds/elsewhere" }).end()),
      },
      ends: READ_BACK,
    }),
  ),
  {
    what: "informational answers before the real one",
    manners: {
      post: (heard) => {
        raw(heard, "HTTP/1.1 102 Processing\r\n\r\n", "HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n");
        heard.usual();
      },
    },
    ends: ["C"],
  },
  {
    what: "an answer that changes the protocol",
    manners: {
      post: once((heard) => {
        raw(heard, "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n");
        cut(heard);
      }),
    },
    ends: READ_BACK,
  },
  {
    what: "JSON cut short under a true length",
    manners: {
      post: once((heard) => {
        const half = body(heard.refund).slice(0, 40);
        raw(heard, head(half.length), half);
      }),
    },
    ends: READ_BACK,
  },
  {
    what: "a connection that closes inside the body",
    manners: {
      post: once((heard) => {
        raw(heard, head(body(heard.refund).length, "connection: close\r\n"), body(heard.refund).slice(0, 60));
        heard.answer.socket?.end();
      }),
    },
    ends: READ_BACK,
  },
  {
    what: "a body that no length bounds",
    manners: {
      post: once((heard) => {
        raw(heard, "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n", body(heard.refund).slice(0, 60));
        heard.answer.socket?.end();
      }),
    },
    ends: READ_BACK,
  },
  {
    what: "headers that trickle in",
    timeoutMs: 400,
    manners: { post: once((heard) => trickle(heard, head(body(heard.refund).length))) },
    ends: READ_BACK,
  },
  {
    what: "a body that trickles in",
    timeoutMs: 400,
    manners: {
      post: once((heard) => {
        raw(heard, head(body(heard.refund).length));
        trickle(heard, body(heard.refund));
      }),
    },
    ends: READ_BACK,
  },
  {
    what: "compressed without having been asked",
    manners: {
      post: once(({ answer, refund }) =>
        answer.writeHead(200, { "content-encoding": "gzip" }).end(gzipSync(body(refund))),
      ),
    },
    ends: READ_BACK,
  },
  {
    what: "said to be compressed, and garbage",
    manners: {
      post: once(({ answer }) =>
        answer.writeHead(200, { "content-encoding": "gzip" }).end(Buffer.from([0x1f, 0x8b, 8, 0, 255])),
      ),
    },
    ends: READ_BACK,
  },
  {
    what: "every header twice",
    manners: {
      post: ({ json, refund }) =>
        json(200, refund, { "request-id": ["req_1", "req_2"], "idempotent-replayed": ["true", "true"] }),
    },
    ends: ["C"],
  },
  {
    what: "a first answer that claims to be a replay",
    manners: { post: ({ json, refund }) => json(200, refund, { "idempotent-replayed": "true" }) },
    ends: ["C"],
  },
  {
    what: "a replayed refusal of what was committed",
    manners: {
      post: (heard) =>
        heard.nth === 1
          ? cut(heard)
          : heard.json(400, envelope("invalid_request_error", "charge_already_refunded"), {
              "idempotent-replayed": "true",
            }),
      list: (heard) => (heard.nth === 1 ? list(heard, [], false) : heard.usual()),
    },
    ends: ["C", "Q"],
  },
  ...[200, 201, 202, 206].map(
    (status): Misbehaviour => ({
      what: `${status} with an error object, though committed`,
      manners: { post: once(({ json }) => json(status, envelope("card_error", "charge_disputed"))) },
      ends: READ_BACK,
    }),
  ),
  {
    what: "204 without a body",
    manners: { post: once(({ answer }) => answer.writeHead(204).end()) },
    ends: READ_BACK,
  },
  {
    what: "200 with null, an array, a number, a text",
    manners: {
      post: ({ nth, json, usual }) => {
        const odd = [null, [], 7, "ok"];
        if (nth <= odd.length) json(200, odd[nth - 1]);
        else usual();
      },
      list: (heard) => heard.json(200, []),
    },
    ends: ["C"],
  },
  {
    what: "an amount as text",
    manners: { post: always(({ json, refund }) => json(200, { ...refund, amount: String(refund?.amount) })) },
    ends: READ_BACK,
  },
  ...[-2_000, 20.5, 1e21, 0, 2_001, null].map(
    (amount): Misbehaviour => ({
      what: `an answer that names the amount ${amount}`,
      manners: { post: always(({ json, refund }) => json(200, { ...refund, amount })) },
      ends: READ_BACK,
    }),
  ),
  { what: "a currency in capitals", manners: { post: altered({ currency: "GBP" }) }, ends: ["C"] },
  { what: "another currency in the answer", manners: { post: altered({ currency: "jpy" }) }, ends: ["C"] },
  {
    what: "another currency, answer and list",
    manners: { commit: (refund) => ({ ...refund, currency: "jpy" }) },
    ends: PERSON,
  },
  {
    what: "another payment in the answer",
    manners: { post: altered({ payment_intent: "pi_other" }) },
    ends: ["C"],
  },
  { what: "a state nobody knows", manners: { post: altered({ status: "blessed" }) }, ends: ["C"] },
  {
    what: "a state nobody knows, answer and list",
    manners: { commit: (refund) => ({ ...refund, status: "blessed" }) },
    ends: PERSON,
  },
  { what: "no state", manners: { post: without("status") }, ends: ["C"] },
  { what: "no id", manners: { post: without("id") }, ends: ["C"] },
  { what: "an empty id", manners: { post: altered({ id: "" }) }, ends: ["C"] },
  { what: "another kind of object", manners: { post: altered({ object: "charge" }) }, ends: ["C"] },
  { what: "no metadata in the answer", manners: { post: without("metadata") }, ends: ["C"] },
  {
    what: "the answer names another operation",
    manners: { post: altered({ metadata: { operation_id: "op_00000000000000000000000000" } }) },
    ends: ["C"],
  },
  {
    what: "metadata that is no text",
    manners: { post: altered({ metadata: { operation_id: 7 } }) },
    ends: ["C"],
  },
  { what: "metadata that is an array", manners: { post: altered({ metadata: [] }) }, ends: ["C"] },
  {
    what: "an answer lost, and no metadata in the list",
    manners: { post: once(cut), commit: (refund) => ({ ...refund, metadata: {} }) },
    ends: ["C", "Q"],
  },
  {
    what: "an id as long as a page, answer and list",
    manners: { commit: (refund) => ({ ...refund, id: `re_${longText(9_000)}` }) },
    ends: PERSON,
  },
  {
    what: "a state as long as a page, answer and list",
    manners: { commit: (refund) => ({ ...refund, status: longText(9_000) }) },
    ends: PERSON,
  },
  {
    what: "a reason as long as a page",
    manners: { commit: (refund) => ({ ...refund, status: "pending", pending_reason: longText(9_000) }) },
    ends: PERSON,
  },
  {
    what: "a refusal whose code is as long as a page",
    manners: {
      commits: false,
      post: ({ json }) => json(400, envelope("invalid_request_error", longText(9_000))),
    },
    ends: ["R"],
  },
  {
    what: "a character that no database keeps",
    manners: {
      commit: (refund) => ({ ...refund, failure_reason: "\u0000\ud800", id: `${refund.id}\u0000` }),
    },
    ends: ["C", "Q"],
  },
  {
    what: "a state that wants a person's action",
    manners: { commit: (refund) => ({ ...refund, status: "requires_action" }) },
    ends: PERSON,
  },
  {
    what: "cancelled at once",
    manners: { commit: (refund) => ({ ...refund, status: "canceled" }) },
    ends: ["R"],
  },
  {
    what: "the answer speaks of another refund, a failed one; ours is made",
    manners: { post: once(altered({ id: "re_else", status: "failed", amount: 999 })) },
    ends: READ_BACK,
  },
  {
    what: "the answer speaks of another payment's cancelled refund; ours is made",
    manners: { post: once(altered({ id: "re_else", status: "canceled", payment_intent: "pi_x" })) },
    ends: READ_BACK,
  },
  {
    what: "the answer speaks of another failed refund like ours, without our mark; ours is made",
    manners: { post: once(altered({ id: "re_else", status: "failed", metadata: {} })) },
    ends: READ_BACK,
  },
  {
    what: "committed, and the provider's own trouble under the number of a refusal",
    manners: { post: once(({ json }) => json(404, envelope("api_error"))) },
    ends: READ_BACK,
  },
  {
    what: "the answer speaks of another operation's failed refund; ours is made",
    manners: {
      post: once(altered({ id: "re_else", status: "failed", metadata: { operation_id: "op_else" } })),
    },
    ends: READ_BACK,
  },
  {
    what: "created in 1970",
    manners: { commit: (refund) => ({ ...refund, created: 0 }), post: once(cut) },
    ends: READ_BACK,
  },
  {
    what: "created in a hundred years",
    manners: {
      commit: (refund) => ({ ...refund, created: refund.created + 3_200_000_000 }),
      post: once(cut),
    },
    ends: READ_BACK,
  },
  {
    what: "created at a time that is no time",
    manners: { commit: (refund) => ({ ...refund, created: 9e15 }), post: once(cut) },
    ends: ["C", "Q"],
  },
  // Lists. The key is safe for a day, so that an unreadable list is answered by the same request again.
  {
    what: "a list that shows another operation's refund under the id of ours, for good",
    manners: {
      post: always(cut),
      list: (heard) =>
        list(
          heard,
          [...heard.refunds, { ...heard.refunds[0], amount: 300, metadata: { operation_id: "op_else" } }],
          false,
        ),
    },
    ends: PERSON,
  },
  {
    what: "a list that repeats its page for ever",
    manners: lostAnd((heard) => list(heard, heard.refunds, true)),
    ends: READ_BACK,
  },
  {
    what: "a list that promises more and brings an empty page",
    manners: lostAnd((heard) => list(heard, [], true)),
    ends: READ_BACK,
  },
  {
    what: "a list that turns in a circle of two pages",
    manners: lostAnd((heard) => list(heard, [{ ...heard.refunds[0], id: `re_c${heard.nth % 2}` }], true)),
    ends: ["C", "Q"],
  },
  {
    what: "a list whose second page is an error",
    manners: lostAnd((heard) =>
      heard.url.searchParams.has("starting_after")
        ? heard.json(500, envelope("api_error"))
        : list(heard, [stranger(heard, 1)], true),
    ),
    ends: READ_BACK,
  },
  {
    what: "a list in the wrong order, in pages of one",
    manners: lostAnd((heard) => {
      const after = heard.url.searchParams.get("starting_after");
      const all = [stranger(heard, 100), ...heard.refunds, stranger(heard, 200)];
      const from = after === null ? 0 : all.findIndex(({ id }) => id === after) + 1;
      list(heard, all.slice(from, from + 1), from + 1 < all.length);
    }),
    ends: READ_BACK,
  },
  {
    what: "a list of other payments' refunds",
    manners: lostAnd((heard) => list(heard, [{ ...stranger(heard, 2_000), payment_intent: "pi_x" }], false)),
    ends: READ_BACK,
  },
  {
    what: "a list without the word whether there is more",
    manners: lostAnd((heard) => heard.json(200, { object: "list", data: [] })),
    ends: READ_BACK,
  },
  {
    what: "a list with one refund that is none",
    manners: lostAnd((heard) => list(heard, [...heard.refunds, { id: "re_?", object: "refund" }], false)),
    ends: READ_BACK,
  },
  {
    what: "our refund twice in the list",
    manners: lostAnd((heard) => list(heard, [...heard.refunds, ...heard.refunds], false)),
    ends: READ_BACK,
  },
  {
    what: "a second refund with our id in the list",
    manners: lostAnd((heard) =>
      list(heard, [...heard.refunds, { ...heard.refunds[0], id: "re_second" }], false),
    ),
    ends: PERSON,
  },
];

/** Digits that do not compress, so that a page of them is a page in an index too. */
function longText(length: number): string {
  let state = 7;
  let text = "";
  while (text.length < length) {
    state = (state * 48_271) % 2_147_483_647;
    text += state.toString(36);
  }
  return text.slice(0, length);
}

/** A refund of that amount on the payment that names no operation of ours. */
const stranger = ({ url }: Heard, amount: number): WireRefund => ({
  id: `re_stranger${amount}`,
  object: "refund",
  amount,
  currency: "gbp",
  payment_intent: url.searchParams.get("payment_intent") ?? "",
  status: "succeeded",
  metadata: {},
  created: 1_790_000_000,
});

/** A byte now and then, for ever. */
function trickle(heard: Heard, text: string): void {
  const { socket } = heard.answer;
  let at = 0;
  const timer = setInterval(() => {
    if (socket === null || socket.destroyed || at >= text.length) clearInterval(timer);
    else socket.write(text.slice(at, at + 1));
    at += 1;
  }, 40);
}
