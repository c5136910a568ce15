import { cpus } from "node:os";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { ensureGenerated } from "./scripts/ensure-generated.mjs";

// A fresh clone or a changed schema: the Prisma client is made before any test imports it.
ensureGenerated(fileURLToPath(new URL(".", import.meta.url)));

// Two kinds of tests. `pure` needs no service and starts none: everything under test/domain and test/sandbox/slack, and
// every `*.unit.test.ts`.
// `services` gets one private PostgreSQL per run (or DATABASE_URL) and one database per file, see test/support.
const pure = ["test/domain/**/*.test.ts", "test/sandbox/slack/**/*.test.ts", "test/**/*.unit.test.ts"];

// Minutes of killing and restarting, and the benchmarks' own test: `npm run test:kills`.
const onDemand = ["test/kills/**/*.test.ts", "test/evaluation/bench.test.ts"];

// A minute or more each: one that begins last decides when the whole run ends.
const longest = ["e2e/queue.e2e", "agent/kill", "e2e/slack-cases.e2e", "e2e/kills.e2e"];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const long = ({ moduleId }: TestSpecification) =>
      longest.some((name) => moduleId.endsWith(`/test/${name}.test.ts`));
    const sorted = await super.sort(files);
    return [...sorted.filter(long), ...sorted.filter((file) => !long(file))];
  }
}

// A server that was handed in has the hundred connections of its defaults; one process of the product may take a quarter of them, and
// some tests start three. Whoever hands in one with three hundred says how many files may run at once: TEST_WORKERS=4.
const handedIn = process.env["DATABASE_URL"] !== undefined;
const most = Math.min(8, 2 * Math.max(2, cpus().length));
const workers = handedIn ? Math.min(most, Number(process.env["TEST_WORKERS"] ?? "1")) : most;

const common = {
  pool: "forks",
  environment: "node",
  // Nothing here waits for time to pass; the limits only end what would hang, also on a slow and shared machine.
  testTimeout: 120_000,
  hookTimeout: 120_000,
  // Tests that declare themselves concurrent start processes of their own.
  maxConcurrency: workers === 1 ? 1 : 3,
  restoreMocks: true,
  unstubEnvs: true,
} as const;

export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    // Most of the time is spent waiting for processes to start and rows to change: two workers a core keep both busy.
    maxWorkers: workers,
    projects: [
      { test: { ...common, name: "pure", include: pure } },
      {
        test: {
          ...common,
          name: "services",
          include: ["test/**/*.test.ts"],
          exclude: [...pure, ...onDemand],
          globalSetup: ["test/support/global-setup.ts"],
        },
      },
      {
        test: {
          ...common,
          name: "kills",
          include: onDemand,
          globalSetup: ["test/support/global-setup.ts"],
        },
      },
    ],
    coverage: { provider: "v8", include: ["src/**/*.ts"], exclude: ["src/db/generated/**"] },
  },
});
