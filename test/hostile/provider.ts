/**
 * A second stand-in for the payments wire, smaller than the sandbox and of no kin with it: it keeps keys as Stripe does, counts what
 * it committed, and lets a test misbehave in any way between the effect and the bytes.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

export interface WireRefund {
  id: string;
  object: string;
  amount: number;
  currency: string;
  payment_intent: string;
  status: string;
  metadata: Record<string, string>;
  created: number;
  [more: string]: unknown;
}

/** One request, with what an undisturbed provider would answer. */
export interface Heard {
  readonly request: IncomingMessage;
  readonly answer: ServerResponse;
  readonly url: URL;
  /** The number of this request among those of its kind on this payment, from 1. */
  readonly nth: number;
  /** The refund that a POST made or found under its key, or that a read names; null elsewhere. */
  readonly refund: WireRefund | null;
  /** Every refund on the payment, newest first. */
  readonly refunds: readonly WireRefund[];
  /** Answers with JSON. */
  json(status: number, body: unknown, headers?: Record<string, string | string[]>): void;
  /** The undisturbed answer. */
  usual(): void;
}

export interface Manners {
  /** A POST is committed before `post` is asked; `false` leaves that to it. */
  readonly commits?: boolean | ((nth: number) => boolean);
  /** Changes what is committed. */
  readonly commit?: (refund: WireRefund) => WireRefund;
  readonly post?: (heard: Heard) => unknown;
  readonly list?: (heard: Heard) => unknown;
  readonly read?: (heard: Heard) => unknown;
}

export interface HostileProvider {
  readonly url: string;
  /** How it treats this payment from now on. */
  misbehave(paymentIntent: string, manners: Manners): void;
  /** How it treats this payment now. */
  manners(paymentIntent: string): Manners;
  /** Of every payment everything. */
  forget(): void;
  /** Refunds that it made on a payment and that did not come to nothing. */
  effects(paymentIntent: string): readonly WireRefund[];
  /** All of them. */
  made(paymentIntent: string): readonly WireRefund[];
  /** Every idempotency key and body it saw on a payment. */
  posts(paymentIntent: string): readonly { key: string; body: string }[];
  close(): Promise<void>;
}

interface Account {
  manners: Manners;
  readonly byKey: Map<string, WireRefund>;
  readonly refunds: WireRefund[];
  readonly posts: { key: string; body: string }[];
  lists: number;
  reads: number;
}

const CURRENCY = "gbp";

export async function startHostileProvider(): Promise<HostileProvider> {
  const accounts = new Map<string, Account>();
  let made = 0;
  const account = (paymentIntent: string): Account => {
    const known = accounts.get(paymentIntent);
    if (known !== undefined) return known;
    const fresh: Account = { manners: {}, byKey: new Map(), refunds: [], posts: [], lists: 0, reads: 0 };
    accounts.set(paymentIntent, fresh);
    return fresh;
  };

  const post = (at: Account, key: string, form: URLSearchParams): WireRefund | null => {
    const known = at.byKey.get(key);
    if (known !== undefined) return known;
    const { commits = true } = at.manners;
    if (!(typeof commits === "function" ? commits(at.posts.length) : commits)) return null;
    made += 1;
    const refund: WireRefund = {
      id: `re_h${made}`,
      object: "refund",
      amount: Number(form.get("amount")),
      currency: CURRENCY,
      payment_intent: form.get("payment_intent") ?? "",
      status: "succeeded",
      metadata: {
        operation_id: form.get("metadata[operation_id]") ?? "",
        operation_key: form.get("metadata[operation_key]") ?? "",
      },
      created: Math.floor(Date.now() / 1000),
    };
    const kept = at.manners.commit?.(refund) ?? refund;
    at.byKey.set(key, kept);
    at.refunds.unshift(kept);
    return kept;
  };

  const server = createServer((request, answer) => {
    void handle(request, answer).catch((error: unknown) => answer.destroy(error as Error));
  });

  async function handle(request: IncomingMessage, answer: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", "http://provider.example");
    const body = await text(request);
    const json: Heard["json"] = (status, value, headers = {}) => {
      answer.writeHead(status, { "content-type": "application/json", ...headers });
      answer.end(JSON.stringify(value));
    };
    if (request.method === "POST") {
      const form = new URLSearchParams(body);
      const at = account(form.get("payment_intent") ?? "");
      const key = String(request.headers["idempotency-key"]);
      at.posts.push({ key, body });
      const refund = post(at, key, form);
      const usual = (): void =>
        refund === null ? json(500, { error: { type: "api_error", message: "no" } }) : json(200, refund);
      await (at.manners.post ?? (() => usual()))({
        request,
        answer,
        url,
        nth: at.posts.length,
        refund,
        refunds: at.refunds,
        json,
        usual,
      });
      return;
    }
    const inPath = /^\/v1\/refunds\/(.+)$/.exec(url.pathname)?.[1];
    const named = inPath === undefined ? undefined : decodeURIComponent(inPath);
    const holder =
      named === undefined
        ? account(url.searchParams.get("payment_intent") ?? "")
        : [...accounts.values()].find(({ refunds }) => refunds.some(({ id }) => id === named));
    const at = holder ?? account("");
    const refund = at.refunds.find(({ id }) => id === named) ?? null;
    if (named === undefined) at.lists += 1;
    else at.reads += 1;
    const usual = (): void => {
      if (named === undefined) json(200, { object: "list", has_more: false, data: at.refunds });
      else if (refund === null)
        json(404, { error: { type: "invalid_request_error", code: "resource_missing" } });
      else json(200, refund);
    };
    const manner = named === undefined ? at.manners.list : at.manners.read;
    await (manner ?? (() => usual()))({
      request,
      answer,
      url,
      nth: named === undefined ? at.lists : at.reads,
      refund,
      refunds: at.refunds,
      json,
      usual,
    });
  }

  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    misbehave: (paymentIntent, manners) => {
      account(paymentIntent).manners = manners;
    },
    manners: (paymentIntent) => account(paymentIntent).manners,
    forget: () => accounts.clear(),
    effects: (paymentIntent) =>
      account(paymentIntent).refunds.filter(({ status }) => status !== "failed" && status !== "canceled"),
    made: (paymentIntent) => account(paymentIntent).refunds,
    posts: (paymentIntent) => account(paymentIntent).posts,
    close: () =>
      new Promise((closed) => {
        server.close(() => closed());
        server.closeAllConnections();
      }),
  };
}
