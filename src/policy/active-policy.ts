/** The active policy: a row that names a stored version by its hash. */
import type { Db, SqlRunner, Tx } from "../db/connect.js";
import { CountersignError } from "../domain/errors.js";
import type { Policy } from "../domain/policy/policy.js";
import { parsePolicyFile, policyHash, policyToFile } from "../domain/policy/policy-file.js";
import type { LoadedPolicy } from "./policy-text.js";

export interface ActivePolicy {
  readonly policy: Policy;
  readonly hash: string;
}

/** Tells the audit log, in the transaction that makes the policy the active one; told again, it says nothing new. */
export type RecordActivation = (tx: Tx, policy: { hash: string; textHash: string }) => Promise<void>;

/**
 * Stores the version, if it is new, and makes it the active one. Waits for transactions that act under the version before;
 * whoever asks afterwards gets this one. `changed`: it was not the active one already.
 */
export async function activatePolicy(
  db: Db,
  loaded: LoadedPolicy,
  record: RecordActivation = async () => {},
): Promise<{ readonly changed: boolean }> {
  const parsed = JSON.stringify(policyToFile(loaded.policy));
  const rows = await db.tx(async (tx) => {
    await tx.sql(
      "policy.store",
      `INSERT INTO policy_versions (hash, text_hash, body, parsed) VALUES ($1, $2, $3, $4::jsonb)
       ON CONFLICT (hash) DO NOTHING`,
      [loaded.hash, loaded.textHash, loaded.text, parsed],
    );
    const activated = await tx.sql(
      "policy.activate",
      `INSERT INTO active_policy (singleton, hash) VALUES (true, $1)
       ON CONFLICT (singleton) DO UPDATE SET hash = excluded.hash, activated_at = countersign_now()
       WHERE active_policy.hash <> excluded.hash RETURNING hash`,
      [loaded.hash],
    );
    await record(tx, { hash: loaded.hash, textHash: loaded.textHash });
    return activated;
  });
  return { changed: rows.length > 0 };
}

/** Which policy is in force; null: none yet. */
export async function activeHash(on: SqlRunner): Promise<string | null> {
  const [row] = await on.sql<{ hash: string }>("policy.active", "SELECT hash FROM active_policy");
  return row?.hash ?? null;
}

/** The policy in force. Throws `CountersignError('no_active_policy')` before the first one was activated. */
export async function activePolicy(on: SqlRunner): Promise<ActivePolicy> {
  const hash = await activeHash(on);
  if (hash === null) throw noActivePolicy();
  return { policy: await policyVersion(on, hash), hash };
}

export const noActivePolicy = (): CountersignError =>
  new CountersignError("no_active_policy", "No policy is active yet; start with a policy file first.");

/** Versions never change, so what a hash names may be kept; a handful is more than are ever in use at once. */
const kept = new Map<string, Policy>();
const MAX_KEPT = 16;

/** The policy that a hash names, for showing under which one something was decided. */
export async function policyVersion(on: SqlRunner, hash: string): Promise<Policy> {
  const known = kept.get(hash);
  if (known !== undefined) return known;
  const [row] = await on.sql<{ parsed: unknown }>(
    "policy.version",
    "SELECT parsed FROM policy_versions WHERE hash = $1",
    [hash],
  );
  const parsed = parsePolicyFile(row?.parsed);
  if (!parsed.ok || policyHash(parsed.policy) !== hash) {
    throw new CountersignError("bad_policy_version", `The stored policy ${hash} cannot be read any more.`, {
      ids: { hash },
    });
  }
  if (kept.size >= MAX_KEPT) kept.delete(kept.keys().next().value ?? "");
  kept.set(hash, parsed.policy);
  return parsed.policy;
}

/** When the policy of this hash was first loaded on this database; null: never. */
export async function policyLoadedAt(on: SqlRunner, hash: string): Promise<Date | null> {
  const [row] = await on.sql<{ loaded_at: Date }>(
    "policy.loaded_at",
    "SELECT loaded_at FROM policy_versions WHERE hash = $1",
    [hash],
  );
  return row?.loaded_at ?? null;
}
