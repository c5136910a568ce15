import { createHash } from "node:crypto";
import canonicalizeJson from "canonicalize";

/** A value that has one JSON form. Bigints are written as integers, so they must be safe to compare as text. */
export type Canonical =
  | null
  | boolean
  | number
  | string
  | bigint
  | readonly Canonical[]
  | { readonly [key: string]: Canonical | undefined };

/**
 * Canonical JSON (RFC 8785 key order and number form). Bigints become decimal strings marked `n:`, so that
 * an amount can never collide with text that happens to hold the same digits. Undefined members are left out.
 */
export function canonicalJson(value: Canonical): string {
  const text = canonicalizeJson(plain(value));
  if (text === undefined) throw new Error("canonicalJson: the value has no JSON form");
  return text;
}

/** SHA-256 over canonical JSON, lower-case hex. */
export const canonicalHash = (value: Canonical): string => sha256Hex(canonicalJson(value));

/** SHA-256 of UTF-8 text, lower-case hex. */
export const sha256Hex = (text: string): string => createHash("sha256").update(text, "utf8").digest("hex");

function plain(value: Canonical): unknown {
  if (typeof value === "bigint") return `n:${value}`;
  if (Array.isArray(value)) return value.map((member: Canonical) => plain(member));
  if (value !== null && typeof value === "object") {
    return Object.fromEntries(
      Object.entries(value)
        .filter(([, member]) => member !== undefined)
        .map(([key, member]) => [key, plain(member as Canonical)]),
    );
  }
  return value;
}
