import { inject } from "vitest";

/**
 * A Redis database of this worker alone (its number is the worker's), so that a test may empty it; undefined when the run has no
 * REDIS_URL: such suites say `describe.skipIf(redisUrl() === undefined)`.
 */
export function redisUrl(): string | undefined {
  const { redisUrl: base } = inject("server");
  if (base === undefined) return undefined;
  const url = new URL(base);
  url.pathname = `/${1 + (Number(process.env["VITEST_POOL_ID"] ?? "1") % 15)}`;
  return url.toString();
}
