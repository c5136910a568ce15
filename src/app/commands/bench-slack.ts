/** `countersign bench slack`: events at an even pace over both ways in, each timed until it is acknowledged. */
import { type AckReport, measureAcks, type Spread } from "../../evaluation/index.js";
import { CommandFailure, EXIT_BAD_USAGE } from "../exit.js";
import { complain, print, printJson, table } from "../output.js";
import { withBenchWorld } from "./bench-world.js";

export interface BenchSlackOptions {
  readonly rate?: number;
  readonly seconds?: number;
  readonly rows?: number;
  readonly transport?: "http" | "socket" | "both";
  readonly json?: boolean;
}

const DEFAULT_RATE = 50;
const DEFAULT_SECONDS = 60;
const PENDING_APPROVALS = 1_000;

export async function benchSlack(options: BenchSlackOptions): Promise<void> {
  const { rate = DEFAULT_RATE, seconds = DEFAULT_SECONDS, rows = 0, transport = "both" } = options;
  if (rate <= 0 || seconds <= 0 || rows < 0) {
    throw new CommandFailure("--rate and --seconds must be positive.", EXIT_BAD_USAGE);
  }
  const reports: { transport: string; machine: string; report: AckReport }[] = [];
  for (const way of transport === "both" ? (["http", "socket"] as const) : [transport]) {
    complain(`${way}: ${rate} events a second for ${seconds} s`);
    reports.push(await overOne(way, { rate, seconds, rows }));
  }
  if (options.json === true) printJson({ rate, seconds, rows, reports });
  else {
    print(reports[0]?.machine ?? "");
    print(`${rate} events a second for ${seconds} s, ${rows} operations in the tables`);
    print("");
    print(
      table([
        ["way in", "sent", "acknowledged", "tickets", "p50 ms", "p90 ms", "p99 ms", "max ms", "sent late"],
        ...reports.map(({ transport: way, report }) => [
          way,
          String(report.sent),
          String(report.acknowledged),
          `${report.recorded} after ${(report.recordedAfterMs / 1000).toFixed(1)} s`,
          ...milliseconds(report.spread),
          String(report.sentLate),
        ]),
      ]),
    );
  }
  const wrong = reports.flatMap(({ transport: way, report }) =>
    report.wrong.map((what) => `${way}: ${what}`),
  );
  if (wrong.length > 0) throw new CommandFailure(wrong.join("\n"));
}

export const milliseconds = ({ p50, p90, p99, max }: Spread): string[] =>
  [p50, p90, p99, max].map((ms) => ms.toFixed(1));

async function overOne(
  way: "http" | "socket",
  { rate, seconds, rows }: { rate: number; seconds: number; rows: number },
): Promise<{ transport: string; machine: string; report: AckReport }> {
  const pendingApprovals = rows === 0 ? 0 : PENDING_APPROVALS;
  return withBenchWorld({ transport: way, orders: 1, rows, pendingApprovals }, async (bench) => {
    await bench.product("app");
    await bench.product("worker");
    const { control } = bench.world.slack;
    const began = Math.floor(performance.timeOrigin / 1000);
    const report = await measureAcks(
      {
        send: async (n) => {
          const { acked } = await control.injectEvent({
            type: "message",
            channel: "C_TICK",
            channel_type: "channel",
            user: "U_AGENT",
            ts: `${began}.${String(n).padStart(6, "0")}`,
            text: `Question ${n}: how long do I have to return a jacket?`,
          });
          return acked;
        },
        recorded: async () => {
          const [row] = await bench.db.sql<{ n: number }>(
            "bench.recorded",
            "SELECT count(*)::int AS n FROM tickets WHERE text LIKE 'Question %'",
          );
          return row?.n ?? 0;
        },
      },
      { perSecond: rate, seconds },
    );
    return { transport: way, machine: bench.machine, report };
  });
}
