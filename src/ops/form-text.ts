/** What people type into on-call's forms. */

/** Longest reason or evidence reference that is kept, in characters. */
export const TEXT_MAX_CHARS = 2_000;

interface Invalid<Field extends string> {
  readonly outcome: "invalid";
  readonly field: Field;
  readonly sentence: string;
}

export function missingReason(request: { readonly reason: string }): Invalid<"reason"> | null {
  return request.reason.trim() === ""
    ? { outcome: "invalid", field: "reason", sentence: "Say why, so that others understand it later." }
    : null;
}

export function missingText(request: {
  readonly reason: string;
  readonly evidenceRef: string;
}): Invalid<"reason" | "evidence"> | null {
  const reason = missingReason(request);
  if (reason !== null) return reason;
  if (namesSomething(request.evidenceRef)) return null;
  return {
    outcome: "invalid",
    field: "evidence",
    sentence: "Name the evidence: the provider's reference, or a link to what you saw.",
  };
}

/** What is typed to fill a field, and leads nobody anywhere. */
const NO_EVIDENCE: ReadonlySet<string> = new Set(["x", "no", "na", "none", "nil", "null", "nothing", "tbd"]);

function namesSomething(evidence: string): boolean {
  const letters = evidence.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
  return letters !== "" && !NO_EVIDENCE.has(letters);
}

/** Of a form that is taken a second time, after its process died, when somebody has decided otherwise since. */
export const CARRIED_OUT_BEFORE =
  "This form was carried out before, and the operation has moved since. Nothing was changed now; send a new one if you mean it.";

/** As the ledger takes it. */
export const typedAtOf = ({
  typedAt,
}: {
  readonly typedAt?: Date | null | undefined;
}): { readonly typedAt?: Date } => (typedAt === undefined || typedAt === null ? {} : { typedAt });
