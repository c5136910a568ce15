/** Closes a switch over a union: a new member does not compile until it is placed. Throws if reached at run time. */
export function assertNever(value: never, what = "value"): never {
  throw new Error(`unexpected ${what}: ${JSON.stringify(value)}`);
}
