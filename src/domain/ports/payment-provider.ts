/**
 * The provider as the ledger's dispatcher sees it. An adapter sends each request once; repeating is the ledger's business.
 * No method throws for what the provider or the network did: those are outcomes.
 */
import type { AttemptOutcome, Listing } from "../evidence.js";
import type { Operation } from "../operation.js";

/** A request as it is stored with the first attempt and sent again parameter for parameter. */
export interface StoredRequest {
  endpoint: "refunds.create" | "subscriptions.cancel" | "subscriptions.update";
  /** Path argument (subscription id) or null. */
  target: string | null;
  /** Body parameters in the order they are sent; amounts as integers. */
  params: { [key: string]: string | number | boolean | { [key: string]: string } };
}

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

export interface PaymentProvider {
  /** The request for this operation. Pure; called once, for the first attempt. */
  buildRequest(operation: Operation): StoredRequest;
  /** Sends once and judges the answer against the operation's material fields (the postcondition). */
  execute(operation: Operation, request: StoredRequest, options: SendOptions): Promise<AttemptOutcome>;
  /** Reads everything the provider lists for the operation's target, to the last page. */
  list(operation: Operation, options: { timeoutMs: number; signal?: AbortSignal }): Promise<Listing>;
  /** Reads one effect by the provider's reference. */
  read(ref: string, options: { timeoutMs: number }): Promise<Listing>;
  /** The provider answers at all (for health). */
  ping(options: { timeoutMs: number }): Promise<{ ok: true } | { ok: false; reason: string }>;
}
