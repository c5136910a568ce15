/**
 * Hears of released turns at the moment of their commit: the database itself tells, so that nobody has to look for them over and over
 * and take the processor's time from what is measured.
 */
import pg from "pg";

export interface Releases {
  /** When the turn was released, by this process's steady clock in milliseconds; null: not within `ms`. */
  heardOf(turnId: string, ms: number): Promise<number | null>;
  close(): Promise<void>;
}

const CHANNEL = "bench_released";
/** The trigger costs the product's commit a little, which counts against it. */
const TELL = `
CREATE OR REPLACE FUNCTION bench_tell_released() RETURNS trigger LANGUAGE plpgsql AS $tell$
BEGIN PERFORM pg_notify('${CHANNEL}', NEW.id); RETURN NULL; END $tell$;
CREATE OR REPLACE TRIGGER bench_released AFTER UPDATE OF state ON turns
FOR EACH ROW WHEN (NEW.state = 'released') EXECUTE FUNCTION bench_tell_released()`;

/** Listens on a throw-away database, which gets a trigger for it. */
export async function listenForReleases(url: string): Promise<Releases> {
  const client = new pg.Client({ connectionString: url });
  const heard = new Map<string, number>();
  const waiting = new Map<string, (at: number) => void>();
  client.on("notification", ({ payload }) => {
    if (payload === undefined) return;
    const at = performance.now();
    heard.set(payload, at);
    waiting.get(payload)?.(at);
  });
  await client.connect();
  await client.query(TELL);
  await client.query(`LISTEN ${CHANNEL}`);
  return {
    heardOf: async (turnId, ms) => {
      const known = heard.get(turnId);
      if (known !== undefined) return known;
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<null>((resolve) => {
        timer = setTimeout(() => resolve(null), ms);
      });
      const told = new Promise<number>((resolve) => waiting.set(turnId, resolve));
      try {
        return await Promise.race([told, late]);
      } finally {
        clearTimeout(timer);
        waiting.delete(turnId);
      }
    },
    close: () => client.end(),
  };
}
