/**
 * Every refusal of the sandbox, in Stripe's envelope.
 *
 * Types and codes are those of the official client's union; `executed` says whether the
 * request had begun to execute, which decides whether its answer is kept under its
 * idempotency key (source: docs.stripe.com/api/idempotent_requests).
 */

export type WireErrorType = "api_error" | "card_error" | "idempotency_error" | "invalid_request_error";

export interface WireErrorBody {
  error: {
    type: WireErrorType;
    message: string;
    code?: string;
    param?: string;
    charge?: string;
    decline_code?: string;
    doc_url?: string;
  };
}

export class WireError extends Error {
  readonly status: number;
  readonly body: WireErrorBody;
  /** True when execution had begun: the answer is stored under the key and replayed. */
  readonly executed: boolean;

  constructor(status: number, error: WireErrorBody["error"], options: { executed?: boolean } = {}) {
    super(error.message);
    this.name = "WireError";
    this.status = status;
    this.body = {
      error:
        error.code === undefined
          ? error
          : { ...error, doc_url: `https://stripe.com/docs/error-codes/${error.code.replaceAll("_", "-")}` },
    };
    this.executed = options.executed ?? false;
  }
}

function invalid(
  status: number,
  message: string,
  rest: { code?: string; param?: string; charge?: string } = {},
  executed = false,
): WireError {
  return new WireError(status, { type: "invalid_request_error", message, ...rest }, { executed });
}

export const wireErrors = {
  noKey: () => invalid(401, "You did not provide an API key."),
  badKey: (tail: string) => invalid(401, `Invalid API Key provided: ****${tail}`),
  unknownUrl: (method: string, path: string) =>
    invalid(404, `Unrecognized request URL (${method}: ${path}).`),
  badContentType: () => invalid(400, "Request bodies of this API are application/x-www-form-urlencoded."),
  bodyTooLarge: () => invalid(413, "Request body is too large."),
  badForm: (key: string) => invalid(400, `Invalid parameter name: ${key}`, { param: key }),
  keyTooLong: () => invalid(400, "Idempotency-Key may have at most 255 characters."),
  unknownParameter: (param: string) =>
    invalid(400, `Received unknown parameter: ${param}`, { code: "parameter_unknown", param }),
  missingParameter: (param: string, message = `Missing required param: ${param}.`) =>
    invalid(400, message, { code: "parameter_missing", param }),
  emptyParameter: (param: string) =>
    invalid(400, `You passed an empty string for '${param}'.`, { code: "parameter_invalid_empty", param }),
  notAnInteger: (param: string, value: string) =>
    invalid(400, `Invalid integer: ${value}`, { code: "parameter_invalid_integer", param }),
  amountTooLarge: () =>
    invalid(400, "Amount must be no more than 99999999.", { code: "amount_too_large", param: "amount" }),
  exclusive: (a: string, b: string) =>
    invalid(400, `You may only specify one of these parameters: ${a}, ${b}.`, {
      code: "parameters_exclusive",
    }),
  badValue: (param: string, message: string) => invalid(400, message, { param }),
  notExpandable: (param: string) =>
    invalid(400, `This property cannot be expanded (${param}).`, { param: "expand" }),
  missing: (what: string, id: string, param: string) =>
    invalid(404, `No such ${what}: '${id}'`, { code: "resource_missing", param }),
  noSuccessfulCharge: (paymentIntent: string) =>
    invalid(
      400,
      `This PaymentIntent (${paymentIntent}) does not have a successful charge to refund.`,
      {
        code: "payment_intent_unexpected_state",
        param: "payment_intent",
      },
      true,
    ),
  alreadyRefunded: (charge: string) =>
    invalid(
      400,
      `Charge ${charge} has already been refunded.`,
      { code: "charge_already_refunded", charge },
      true,
    ),
  disputed: (charge: string) =>
    invalid(
      400,
      `Charge ${charge} has been charged back; cannot issue a refund.`,
      {
        code: "charge_disputed",
        charge,
      },
      true,
    ),
  moreThanLeft: (wanted: number, left: number) =>
    invalid(
      400,
      `Refund amount (${wanted}) is greater than unrefunded amount on charge (${left})`,
      {
        param: "amount",
      },
      true,
    ),
  canceledSubscription: () =>
    invalid(
      400,
      "A canceled subscription can only update its cancellation_details and metadata.",
      {
        code: "invalid_canceled_subscription_fields",
      },
      true,
    ),
  refundNotCancelable: (status: string) =>
    invalid(
      400,
      `A refund with status ${status} cannot be canceled.`,
      { code: "status_transition_invalid" },
      true,
    ),
  otherParameters: (differing: string[]) =>
    new WireError(400, {
      type: "idempotency_error",
      message: `Keys for idempotent requests can only be used with the same parameters they were first used with. Differing: ${differing.join(", ")}.`,
    }),
  otherEndpoint: () =>
    new WireError(400, {
      type: "idempotency_error",
      message:
        "Keys for idempotent requests can only be used for the same endpoint they were first used for.",
    }),
  keyInUse: () =>
    new WireError(409, {
      type: "idempotency_error",
      code: "idempotency_key_in_use",
      message: "There is currently another in-progress request using this Idempotency-Key.",
    }),
  lockTimeout: () =>
    invalid(
      429,
      "This object cannot be accessed right now because another request is currently accessing it.",
      {
        code: "lock_timeout",
      },
    ),
  rateLimit: () => invalid(429, "Request rate limit exceeded.", { code: "rate_limit" }),
  serverError: () =>
    new WireError(500, { type: "api_error", message: "An unknown error occurred." }, { executed: true }),
} as const;
