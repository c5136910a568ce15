/** What goes into jsonb columns and into event bodies: plain JSON, amounts as integers, times as ISO text. */
import { type Canonical, canonicalJson } from "../domain/canonical.js";
import type { Json, JsonObject } from "../domain/json.js";
import { storableText } from "../domain/text/storable.js";

/**
 * Plain JSON of a value of ours, in text that the database can hold. A bigint beyond 2^53 throws: it would not survive a reader.
 * Undefined members are left out.
 */
export function toJson(value: unknown): Json {
  if (value === null || value === undefined) return null;
  switch (typeof value) {
    case "bigint": {
      const number = Number(value);
      if (!Number.isSafeInteger(number)) throw new RangeError(`${value} has no exact JSON integer`);
      return number;
    }
    case "string":
      return storableText(value);
    case "boolean":
    case "number":
      return value;
    case "object":
      if (value instanceof Date) return value.toISOString();
      if (Array.isArray(value)) return value.map(toJson);
      return toJsonObject(value);
    default:
      throw new TypeError(`a ${typeof value} has no JSON form`);
  }
}

/** As `toJson`, for an object. */
export function toJsonObject(value: object): JsonObject {
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, member]) => member !== undefined)
      .map(([key, member]) => [storableText(key), toJson(member)]),
  );
}

/** Canonical JSON text (RFC 8785) of an event's data. */
export const canonicalData = (value: object): string => canonicalJson(toJsonObject(value) as Canonical);
