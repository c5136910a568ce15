/**
 * What the database's server spent: processor time of all its processes, where they run on this machine, and bytes of its log. Of
 * the whole server: only where nobody else uses it does it belong to what was measured.
 */
import { readdirSync, readFileSync } from "node:fs";
import pg from "pg";

export interface ServerCost {
  /** null: the server runs elsewhere, or the system does not tell. */
  readonly cpuMs: number | null;
  readonly walBytes: number;
}

/** The kernel counts processor time for programs in hundredths of a second. */
const MS_PER_TICK = 10;

/** Runs `work` and returns what the server of `url` spent meanwhile, besides what `work` returned. */
export async function withServerCost<T>(
  url: string,
  work: () => Promise<T>,
): Promise<{ value: T; cost: ServerCost }> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const server = await serverOf(client);
    const [wal, cpu] = [await walBytes(client), cpuMs(server)];
    const value = await work();
    const cpuAfter = cpuMs(server);
    return {
      value,
      cost: {
        cpuMs: cpu === null || cpuAfter === null ? null : cpuAfter - cpu,
        walBytes: (await walBytes(client)) - wal,
      },
    };
  } finally {
    await client.end();
  }
}

async function walBytes(client: pg.Client): Promise<number> {
  const { rows } = await client.query("SELECT (pg_current_wal_insert_lsn() - '0/0')::text AS bytes");
  return Number((rows[0] as { bytes: string } | undefined)?.bytes ?? Number.NaN);
}

interface Times {
  readonly parent: number;
  /** In ticks: its own, and that of its children which have ended. */
  readonly own: number;
  readonly ended: number;
}

/** The process that all others of the server come from; null where it is not on this machine. */
async function serverOf(client: pg.Client): Promise<number | null> {
  const { rows } = await client.query(
    "SELECT pg_backend_pid() AS pid, inet_client_addr() = inet_server_addr() AS here",
  );
  const row = rows[0] as { pid: number; here: boolean | null } | undefined;
  if (row === undefined || row.here === false) return null;
  return timesOf(row.pid)?.parent ?? null;
}

/** A process that ends while they are summed up is in neither place: then once more. */
function cpuMs(server: number | null): number | null {
  for (;;) {
    const top = server === null ? null : timesOf(server);
    if (top === null) return null;
    let ticks = top.own + top.ended;
    for (const name of readdirSync("/proc")) {
      const times = /^\d+$/.test(name) ? timesOf(Number(name)) : null;
      if (times?.parent === server) ticks += times.own + times.ended;
    }
    if (server === null || timesOf(server)?.ended === top.ended) return ticks * MS_PER_TICK;
  }
}

/** null: there is no such process of a PostgreSQL here, or it has ended since. */
function timesOf(pid: number): Times | null {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "ENOENT" || code === "ESRCH") return null;
    throw error;
  }
  const name = text.slice(text.indexOf("(") + 1, text.lastIndexOf(")"));
  if (!name.startsWith("postgres")) return null;
  // proc(5): state is the third field, the parent the fourth, then from the fourteenth on utime, stime, cutime, cstime.
  const fields = text
    .slice(text.lastIndexOf(")") + 2)
    .split(" ")
    .map(Number);
  const [utime = 0, stime = 0, cutime = 0, cstime = 0] = fields.slice(11, 15);
  return { parent: fields[1] ?? 0, own: utime + stime, ended: cutime + cstime };
}
