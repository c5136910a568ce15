/** Opens the database for one command and closes it again. */
import { parseConfig } from "../../config/index.js";
import { type Db, openDb } from "../../db/connect.js";

/** Runs a command on the database of DATABASE_URL. @throws ConfigError when it is not set */
export async function withDb<T>(work: (db: Db) => Promise<T>): Promise<T> {
  const config = parseConfig(["database"]);
  const db = openDb({ url: config.database.url.reveal(), applicationName: "countersign-cli", poolSize: 4 });
  try {
    return await work(db);
  } finally {
    await db.close();
  }
}
