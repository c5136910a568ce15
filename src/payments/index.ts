/**
 * The adapter on Stripe's wire: executes once, reads back, classifies, verifies webhooks. It never touches rows and never
 * repeats anything by itself.
 */
import Stripe from "stripe";
import { CountersignError } from "../domain/errors.js";
import type { Clock } from "../domain/ports/clock.js";
import type { PaymentProvider } from "../domain/ports/payment-provider.js";
import { classify } from "./classify.js";
import { listRefunds, readByRef, readProblem, readSubscription } from "./listing.js";
import { buildRequest, checkRequest, invoke } from "./request.js";
import { createTransport } from "./transport.js";

export { createWebhookVerifier, readEvent } from "./webhook.js";

export interface PaymentsOptions {
  secretKey: string;
  /** Base of the API, `https://api.stripe.com`. */
  apiUrl: string;
  clock: Clock;
}

export interface Payments extends PaymentProvider {
  /** Lets go of the connections once what is under way has ended. */
  close(): Promise<void>;
}

/** @throws CountersignError when `apiUrl` is no http or https URL */
export function createPayments(options: PaymentsOptions): Payments {
  const apiUrl = readUrl(options.apiUrl);
  const transport = createTransport(apiUrl);
  const protocol = apiUrl.protocol === "http:" ? "http" : "https";
  const stripe = new Stripe(options.secretKey, {
    httpClient: transport.httpClient,
    host: apiUrl.hostname,
    port: apiUrl.port === "" ? (protocol === "http" ? 80 : 443) : Number(apiUrl.port),
    protocol,
    maxNetworkRetries: 0,
    telemetry: false,
  });
  const ctx = { stripe, transport, clock: options.clock };

  return {
    buildRequest,
    async execute(operation, request, send) {
      checkRequest(operation, request);
      const exchange = await transport.call(
        {
          timeoutMs: send.timeoutMs,
          beforeSend: () => send.beforeSend(),
          ...(send.signal === undefined ? {} : { signal: send.signal }),
        },
        () => invoke(stripe, request, send.idempotencyKey),
      );
      return classify(operation, request.endpoint, exchange);
    },
    async list({ paymentIntent, providerSubscription }, read) {
      if (paymentIntent !== null) return listRefunds(ctx, { paymentIntent }, read);
      if (providerSubscription !== null) return readSubscription(ctx, providerSubscription, read);
      return { read: "failed", reason: "no_target", detail: "There is nothing of this at the provider." };
    },
    read: (ref, read) => readByRef(ctx, ref, read),
    listSince: (since, read) => listRefunds(ctx, { createdSince: since }, read),
    async ping({ timeoutMs }) {
      const exchange = await transport.call({ timeoutMs }, async () => {
        await stripe.refunds.list({ limit: 1 });
      });
      const problem = readProblem(exchange);
      if (problem === null) return { ok: true };
      // The provider's own code, where it gave one: an expired key is mended by somebody else than an outage.
      const said = NAMED_BY_DETAIL.test(problem.reason) ? "" : ` (${problem.reason})`;
      return { ok: false, reason: problem.detail.replace(/\.$/u, `${said}.`) };
    },
    close: () => transport.close(),
  };
}

const NAMED_BY_DETAIL = /^(?:http_\d+|timeout|aborted|unreachable|client_error)$/u;

function readUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw new CountersignError("bad_configuration", `"${text}" is no URL of a payments API.`);
  }
  return url;
}
