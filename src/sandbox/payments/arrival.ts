/** Faults that stop a request at the door: nothing is executed, whatever the answer says. */
import { assertNever } from "../../domain/assert-never.js";
import type { Meetings } from "./faults.js";
import { type Delivery, errorReply, garbageReply, replyWith, serverErrorReply } from "./reply.js";
import { WireError, wireErrors } from "./wire-error.js";

/**
 * @param keep keeps a refusal under the request's key, unless the key holds an answer already
 * @returns null where the request goes on
 */
export async function meetArrival(
  arrival: Meetings["arrival"],
  keep: (error: WireError) => Promise<void>,
): Promise<Delivery | null> {
  if (arrival === null) return null;
  const { fault } = arrival;
  arrival.fired();
  switch (fault.kind) {
    case "drop_before_commit":
      return { kind: "drop", close: fault.close };
    case "rate_limited": {
      const error = fault.code === "rate_limit" ? wireErrors.rateLimit() : wireErrors.lockTimeout();
      const limited = errorReply(error);
      if (fault.retryAfterSeconds !== undefined)
        limited.headers["retry-after"] = String(fault.retryAfterSeconds);
      return replyWith(limited);
    }
    case "key_in_use":
      return replyWith(errorReply(wireErrors.keyInUse()));
    case "idempotency_error":
      return replyWith(errorReply(wireErrors.otherParameters(["amount"])));
    case "refuse": {
      const error = new WireError(fault.status, {
        type: fault.type,
        message: fault.message,
        ...(fault.code === null ? {} : { code: fault.code }),
      });
      if (fault.store) await keep(error);
      return replyWith(errorReply(error));
    }
    case "read_down":
      return readDown(fault.how);
    default:
      return assertNever(fault, "arrival fault");
  }
}

function readDown(how: "500" | "drop" | "hang" | "429" | "garbage"): Delivery {
  switch (how) {
    case "500":
      return replyWith(serverErrorReply());
    case "429":
      return replyWith(errorReply(wireErrors.rateLimit()));
    case "drop":
      return { kind: "drop", close: "reset" };
    case "hang":
      return { kind: "silence" };
    case "garbage":
      return replyWith(garbageReply(502));
    default:
      return assertNever(how, "read fault");
  }
}

/** What the caller meets now when the commit comes later. */
export function lateAnswer(answer: "drop" | "500" | "409" | "hang"): Delivery {
  switch (answer) {
    case "drop":
      return { kind: "drop", close: "reset" };
    case "500":
      return replyWith(serverErrorReply());
    case "409":
      return replyWith(errorReply(wireErrors.keyInUse()));
    case "hang":
      return { kind: "silence" };
    default:
      return assertNever(answer, "late answer");
  }
}
