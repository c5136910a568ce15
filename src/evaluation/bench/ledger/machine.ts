/** The machine that a measurement was made on, in one line. */
import { cpus, totalmem } from "node:os";
import type { SqlRunner } from "../../../db/connect.js";

const GIB = 2 ** 30;

export async function machineOf(on: SqlRunner): Promise<string> {
  const processors = cpus();
  const [server] = await on.sql<{ version: string; fsync: string; commit: string }>(
    undefined,
    `SELECT current_setting('server_version') AS version, current_setting('fsync') AS fsync,
            current_setting('synchronous_commit') AS commit`,
  );
  const model = processors[0]?.model.trim() ?? "unknown processor";
  return [
    `${processors.length} × ${model}, ${Math.round(totalmem() / GIB)} GiB`,
    `Node ${process.versions.node}`,
    `PostgreSQL ${server?.version ?? "?"} (fsync ${server?.fsync ?? "?"}, synchronous_commit ${server?.commit ?? "?"})`,
  ].join(", ");
}
