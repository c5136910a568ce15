/** Statements that travel together, and what becomes of them when one fails. */
import pg from "pg";
import { describe, expect, it } from "vitest";
import { CommitUnknownError, type OpenDb, openDb } from "../../src/db/connect.js";
import { dbFailure } from "../../src/db/sqlstate.js";
import { wireValue } from "../../src/db/wire-value.js";
import { withDatabase } from "../support/database.js";

const database = withDatabase();

const INSERT = "INSERT INTO customers (id, ref, name, email, email_normal) VALUES ($1, $1, 'n', 'e', 'e')";
const refs = async (): Promise<string[]> =>
  (await database.db.sql<{ ref: string }>("test.refs", "SELECT ref FROM customers ORDER BY ref")).map(
    ({ ref }) => ref,
  );
/** On one connection of its own, so that what it has prepared can be asked for. */
async function onOneConnection(work: (db: OpenDb) => Promise<void>): Promise<void> {
  const db = openDb({ url: database.url, applicationName: "test-one", poolSize: 1 });
  try {
    await work(db);
  } finally {
    await db.close();
  }
}

describe("a transaction", () => {
  it("whose first statement fails has run nothing outside of itself, and what follows is refused", async () => {
    const failed = database.db.tx(async (tx) => {
      await tx.sql("test.divide", "SELECT 1 / $1::int AS n", [0]).catch(() => {});
      await tx.sql("test.customer", INSERT, ["CUS-1"]);
    });
    await expect(failed).rejects.toThrow("current transaction is aborted");
    expect(await refs()).toEqual([]);
  });

  it("that swallows the failure of its first statement is not taken for committed", async () => {
    const swallowed = database.db.tx(async (tx) => {
      await tx.sql("test.divide", "SELECT 1 / $1::int AS n", [0]).catch(() => {});
    });
    await expect(swallowed).rejects.toThrow("rolled back");
  });

  it("that cannot begin runs nothing: not its first statement, not a second that was asked for at once", () =>
    onOneConnection(async (db) => {
      await db.tx((tx) => tx.sql("test.one", "SELECT 1 AS one"));
      // BEGIN is no longer prepared there, and whoever runs it is told so.
      await db.pool.query("DEALLOCATE ALL");
      const broken = db.tx(async (tx) => {
        const both = await Promise.allSettled([
          tx.sql("test.customer", INSERT, ["CUS-1"]),
          tx.sql("test.customer", INSERT, ["CUS-2"]),
        ]);
        expect(both.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
      });
      await expect(broken).rejects.toThrow("did not begin");
      expect(await refs()).toEqual([]);
    }));

  it("keeps statements that were asked for at once, and undoes them together", async () => {
    const undone = database.db.tx(async (tx) => {
      await Promise.all(["CUS-1", "CUS-2", "CUS-3"].map((ref) => tx.sql("test.customer", INSERT, [ref])));
      throw new Error("undo");
    });
    await expect(undone).rejects.toThrow("undo");
    expect(await refs()).toEqual([]);
  });

  it("takes one round trip for what was asked for at once, in the order of asking, each seeing those before it", () =>
    onOneConnection(async (db) => {
      let sent = 0;
      db.pool.on("connect", (client) => {
        const query = client.query.bind(client) as (...args: unknown[]) => unknown;
        Object.assign(client, {
          query: (...args: unknown[]) => {
            sent += 1;
            return query(...args);
          },
        });
      });
      const COUNT = "SELECT count(*)::int AS n FROM customers WHERE name = $1";
      const counts = await db.tx(async (tx) => {
        const answers = await Promise.all([
          tx.sql("test.customer", INSERT, ["CUS-1"]),
          tx.sql("test.count", COUNT, ["n"]),
          Promise.resolve().then(() => tx.later("test.customer", INSERT, ["CUS-2"])),
          Promise.resolve().then(() => tx.sql("test.count", COUNT, ["n"])),
        ]);
        tx.later("test.customer", INSERT, ["CUS-3"]);
        return [answers[1], answers[3]];
      });
      expect(counts).toEqual([[{ n: 1 }], [{ n: 2 }]]);
      // BEGIN with the first two, the third and fourth as soon as those are answered, the last with COMMIT.
      expect(sent).toBeLessThanOrEqual(3);
      expect(await refs()).toEqual(["CUS-1", "CUS-2", "CUS-3"]);
    }));

  it("keeps the order of asking around a text of several statements, which goes by itself", async () => {
    const NAMES = "SELECT DISTINCT name FROM customers";
    await database.db.tx(async (tx) => {
      const several = "UPDATE customers SET name = 'b'; UPDATE customers SET email = 'b'";
      tx.later("test.customer", INSERT, ["CUS-1"]);
      const [before, , after] = await Promise.all([
        tx.sql("test.names", NAMES),
        tx.sql(undefined, several),
        tx.sql("test.names", NAMES),
      ]);
      expect([before, after]).toEqual([[{ name: "n" }], [{ name: "b" }]]);
    });
  });

  it("tells everybody who asked at once of the first error, and commits nothing", async () => {
    const failed = database.db.tx(async (tx) => {
      const all = await Promise.allSettled([
        tx.sql("test.customer", INSERT, ["CUS-1"]),
        tx.sql("test.divide", "SELECT 1 / $1::int AS n", [0]),
        tx.sql("test.customer", INSERT, ["CUS-2"]),
      ]);
      expect(all.map((one) => (one.status === "rejected" ? String(one.reason) : one.status))).toEqual(
        Array.from({ length: 3 }, () => expect.stringContaining("division by zero")),
      );
    });
    await expect(failed).rejects.toThrow("rolled back");
    expect(await refs()).toEqual([]);
  });

  it("without a statement never reaches the database, and still calls back", () =>
    onOneConnection(async (db) => {
      let called = 0;
      await db.tx(async (tx) => {
        tx.afterCommit(() => {
          called += 1;
        });
      });
      expect(called).toBe(1);
      expect(await db.sql("test.prepared", "SELECT name FROM pg_prepared_statements")).toEqual([
        { name: "test.prepared" },
      ]);
    }));
});

describe("what nobody waits for", () => {
  it("is there when the transaction has committed, in the order of the calls, alone or with the next statement", async () => {
    await database.db.tx(async (tx) => {
      tx.later("test.customer", INSERT, ["CUS-1"]);
      tx.later("test.customer", INSERT, ["CUS-2"]);
    });
    expect(await refs()).toEqual(["CUS-1", "CUS-2"]);
    await database.db.tx(async (tx) => {
      tx.later("test.rename", "UPDATE customers SET name = $1", ["renamed"]);
      expect(await tx.sql("test.names", "SELECT DISTINCT name FROM customers")).toEqual([
        { name: "renamed" },
      ]);
      tx.later("test.rename", "UPDATE customers SET name = $1", ["again"]);
      tx.later("test.rename_first", "UPDATE customers SET name = 'first' WHERE ref = $1", ["CUS-1"]);
    });
    expect(await database.db.sql("test.all", "SELECT name FROM customers ORDER BY ref")).toEqual([
      { name: "first" },
      { name: "again" },
    ]);
  });

  it("fails the commit with its own error, calls nobody back and leaves nothing", async () => {
    let called = 0;
    const failed = database.db.tx(async (tx) => {
      tx.afterCommit(() => {
        called += 1;
      });
      await tx.sql("test.customer", INSERT, ["CUS-1"]);
      tx.later("test.customer", INSERT, ["CUS-2"]);
      tx.later("test.customer", INSERT, ["CUS-1"]);
    });
    const error = await failed.catch((caught: unknown) => caught);
    expect(dbFailure(error)).toMatchObject({ kind: "unique" });
    expect(called).toBe(0);
    expect(await refs()).toEqual([]);
  });

  it("leaves the outcome unknown when the connection is lost under it and COMMIT", async () => {
    let tried = 0;
    const lost = database.db.tx(async (tx) => {
      tried += 1;
      await tx.sql("test.customer", INSERT, ["CUS-1"]);
      tx.later("test.die", "SELECT pg_terminate_backend(pg_backend_pid()), pg_sleep(30)");
    });
    await expect(lost).rejects.toBeInstanceOf(CommitUnknownError);
    expect(tried).toBe(1);
    expect(await refs()).toEqual([]);
  });
});

describe("a prepared statement", () => {
  it("that failed when it ran is still prepared, and runs the next time", async () => {
    await expect(database.db.sql("test.divide", "SELECT 1 / $1::int AS n", [0])).rejects.toThrow("division");
    expect(await database.db.sql("test.divide", "SELECT 1 / $1::int AS n", [1])).toEqual([{ n: 1 }]);
    expect(await database.db.sql("test.divide", "SELECT 1 / $1::int AS n", [1])).toEqual([{ n: 1 }]);
  });

  it("that cannot be parsed is not taken for prepared", async () => {
    for (let time = 0; time < 2; time += 1) {
      const error = await database.db
        .sql("test.nonsense", "SELECT nonsense FROM nowhere")
        .catch((caught: unknown) => caught);
      expect(dbFailure(error)).toMatchObject({ sqlstate: "42P01" });
    }
  });

  it("whose rows have columns of one name, or none at all, is read like any other", async () => {
    expect(await database.db.sql("test.twice", "SELECT 1 AS a, 2 AS a")).toEqual([{ a: 2 }]);
    expect(await database.db.sql("test.none", "SELECT FROM (VALUES (1), (2)) AS v(n)")).toEqual([{}, {}]);
  });
});

describe("values on the wire", () => {
  it("arrive as what they were, through ours as through pg's own", async () => {
    const values = [
      ["text[]", ['a"b', "c\\d", "", "NULL", null, "{x}", "ä😀"]],
      [
        "int[]",
        [
          [1, 2],
          [3, 4],
        ],
      ],
      ["bytea", Buffer.from([0, 1, 255])],
      ["bytea", new Uint8Array([5, 6]).subarray(1)],
      ["bytea[]", [Buffer.from([1, 2])]],
      ["timestamptz", new Date("2026-11-02T09:00:00.123Z")],
      ["int8", 9_007_199_254_740_993n],
      ["float8", 0.1],
      ["bool", false],
      ["jsonb", { a: [1, "x"], b: null }],
      ["text", null],
    ] as const;
    const plain = new pg.Client({ connectionString: database.url });
    await plain.connect();
    try {
      for (const [type, value] of values) {
        const text = `SELECT ($1::${type})::text AS t`;
        const theirs = (await plain.query(text, [value])).rows;
        expect(await database.db.sql(undefined, text, [value]), type).toEqual(theirs);
      }
    } finally {
      await plain.end();
    }
  });

  it("lose what PostgreSQL cannot hold, in texts, lists and documents", () => {
    expect(wireValue("a\0b")).toBe("a\ufffdb");
    expect(wireValue(["a\0b"])).toBe('{"a\ufffdb"}');
    expect(wireValue({ "k\0": "\ud83d" })).toBe(JSON.stringify({ "k\ufffd": "\ufffd" }));
    expect(() => wireValue(new Date(Number.NaN))).toThrow(RangeError);
    expect(() => wireValue(() => 1)).toThrow(TypeError);
  });
});
