/**
 * How deep a parsed JSON value goes. Parsing it is no recursion, but reading, hashing and writing it are, and so is the database's: what
 * nests without measure would end them in the middle.
 */

/** No payload of Slack's or Stripe's nests deeper than a few dozen levels. */
export const MAX_JSON_DEPTH = 200;

/** True when lists and objects stand in each other more than `max` times. Never recurses. */
export function nestsDeeperThan(value: unknown, max: number = MAX_JSON_DEPTH): boolean {
  let level = [value];
  for (let depth = 0; ; depth += 1) {
    const nested = level.filter((one): one is object => typeof one === "object" && one !== null);
    if (nested.length === 0) return false;
    if (depth === max) return true;
    level = nested.flatMap((one): unknown[] => (Array.isArray(one) ? one : Object.values(one)));
  }
}
