/**
 * The provider as the ledger's dispatcher sees it. An adapter sends each request once; repeating is the ledger's business.
 * No method throws for what the provider or the network did: those are outcomes.
 */
import type { AttemptOutcome, Listing } from "../evidence.js";
import type { JsonObject } from "../json.js";
import type { Operation } from "../operation.js";

/** A request as it is stored with the first attempt and sent again parameter for parameter. */
export interface StoredRequest {
  endpoint: "refunds.create" | "subscriptions.cancel" | "subscriptions.update";
  /** Path argument (subscription id) or null. */
  target: string | null;
  /** Body parameters in the order they are sent; amounts as integers. */
  params: { [key: string]: string | number | boolean | { [key: string]: string } };
}

/** What a request is built of. An `Operation` is one; so is one that is about to be stored. */
export type RequestMaterial = Pick<
  Operation,
  "id" | "key" | "kind" | "paymentIntent" | "providerSubscription" | "amountMinor" | "atPeriodEnd"
>;

export interface SendOptions {
  idempotencyKey: string;
  /** For headers and body together. */
  timeoutMs: number;
  signal?: AbortSignal;
  /**
   * The last step before the socket: throws `SendRefused` when the lease is lost or the key's life would run out, and then
   * not a byte is sent (outcome `not_executed` with code `send_refused`).
   */
  beforeSend(): Promise<void>;
}

/** Thrown by `beforeSend`. */
export class SendRefused extends Error {
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.name = "SendRefused";
    this.code = code;
  }
}

/** Code of the error with which `execute` refuses a request that is not the operation's, before anything is sent. */
export const REQUEST_MISMATCH = "request_mismatch";

/** Whose effects to list: a payment intent or a subscription of the provider. An `Operation` is one. */
export interface ProviderTarget {
  readonly paymentIntent: string | null;
  readonly providerSubscription: string | null;
}

export interface ReadOptions {
  timeoutMs: number;
  signal?: AbortSignal;
}

export interface PaymentProvider {
  /** The request for this operation. Pure; called once, for the first attempt. */
  buildRequest(operation: RequestMaterial): StoredRequest;
  /**
   * Sends once and judges the answer against the operation's material fields (the postcondition).
   *
   * @throws CountersignError `REQUEST_MISMATCH`
   */
  execute(operation: Operation, request: StoredRequest, options: SendOptions): Promise<AttemptOutcome>;
  /** Everything the provider lists for one target, to the last page, with its balance; the time is for all pages together. */
  list(target: ProviderTarget, options: ReadOptions): Promise<Listing>;
  /** Every refund of the whole account since then, to the last page; the time is for each page. `balance` is null. */
  listSince(since: Date, options: ReadOptions): Promise<Listing>;
  /** One effect by the provider's reference; a complete listing without effects: there is no such thing. */
  read(ref: string, options: ReadOptions): Promise<Listing>;
  /** The provider answers, and without an error (for health). `reason` is a sentence. */
  ping(options: { timeoutMs: number }): Promise<{ ok: true } | { ok: false; reason: string }>;
}

/** A webhook whose signature holds: one event about one object. */
export interface ProviderEvent {
  /** Unique for the event; the same id is the same event however often it comes. */
  id: string;
  type: string;
  /** The object the event is about, as it was then. Judged only after it has been read again. */
  objectId: string | null;
  paymentIntent: string | null;
  subscription: string | null;
  operationId: string | null;
  /** The body, parsed. */
  payload: JsonObject;
}

/** `unreadable`: it comes from the provider, and is of a form that we have no use for. With any other reason it may be anybody's. */
export type WebhookReading =
  | { ok: true; event: ProviderEvent }
  | { ok: false; reason: "unreadable" | "no_signature" | "bad_signature" | "too_old" | "too_new" };

/** Checks the signature over the exact bytes and reads the event. Never throws. */
export type VerifyWebhook = (rawBody: Buffer, signature: string | undefined, now: Date) => WebhookReading;
