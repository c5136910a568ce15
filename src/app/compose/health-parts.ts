/** What of health only the payment provider can say, from whichever process it is asked. */
import type { Clock } from "../../domain/ports/clock.js";
import type { PaymentProvider } from "../../domain/ports/payment-provider.js";
import { type HealthPart, withinMs } from "../../ops/index.js";

const PING_TIMEOUT_MS = 2_000;
/** Somebody waits for it; a long list is read to its end by the worker, which has the time. */
const LIST_WITHIN_MS = 2_500;

/**
 * Whether it answers, and whether what was made there lately can be read, as the sweep reads it (`windowMs`): one refund in it that nobody
 * can read, or a right that the key lacks, hides all others.
 */
export async function providerParts(
  provider: Pick<PaymentProvider, "ping" | "listSince">,
  { clock, windowMs }: { readonly clock: Clock; readonly windowMs: number },
): Promise<readonly HealthPart[]> {
  const since = new Date(clock.now().getTime() - windowMs);
  const [answers, books] = await Promise.all([
    provider.ping({ timeoutMs: PING_TIMEOUT_MS }),
    withinMs(LIST_WITHIN_MS, provider.listSince(since, { timeoutMs: PING_TIMEOUT_MS })),
  ]);
  return [
    {
      name: "payments",
      ok: answers.ok,
      sentence: answers.ok ? "The payment provider answers." : answers.reason,
    },
    { name: "books", ...booksStanding(books) },
  ];
}

function booksStanding(
  books: Awaited<ReturnType<PaymentProvider["listSince"]>> | "late",
): Pick<HealthPart, "ok" | "sentence"> {
  if (books === "late")
    return {
      ok: true,
      sentence: `The provider's list of everything was not at its end after ${LIST_WITHIN_MS / 1000} s; the worker reads on.`,
    };
  return books.read === "failed"
    ? {
        ok: false,
        sentence: `The provider's list of everything cannot be read: ${books.detail} What was made there and is not ours would not be found; known payments are read one by one.`,
      }
    : { ok: true, sentence: "The provider's list of everything can be read." };
}
