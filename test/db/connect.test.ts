import { describe, expect, it } from "vitest";
import { clockOffset, dbNow, setClockOffset } from "../../src/db/clock.js";
import { CommitUnknownError, utcMicros } from "../../src/db/connect.js";
import { dbFailure, isCheckViolation, isUniqueViolation } from "../../src/db/sqlstate.js";
import { withDatabase } from "../support/database.js";
import { barrier } from "../support/wait.js";

const pg = withDatabase();

const insertCustomer = (ref: string) =>
  pg.db.sql(
    "test.customer",
    "INSERT INTO customers (id, ref, name, email, email_normal) VALUES ($1, $1, 'n', 'e', 'e')",
    [ref],
  );

describe("values", () => {
  it("reads int8 beyond 2^53 exactly, alone and in arrays, and leaves other pools' parsers alone", async () => {
    const [row] = await pg.db.sql<{ a: bigint; b: (bigint | null)[] }>(
      undefined,
      "SELECT 9007199254740993::int8 AS a, ARRAY[9007199254740993, NULL]::int8[] AS b",
    );
    expect(row).toEqual({ a: 9007199254740993n, b: [9007199254740993n, null] });
  });

  it("writes times for hashing with microseconds in UTC whatever the session's zone", async () => {
    const rows = await pg.db.tx(async (tx) => {
      await tx.sql(undefined, "SET LOCAL TIME ZONE 'Asia/Kolkata'");
      return tx.sql<{ at: string }>(
        undefined,
        `SELECT ${utcMicros("'2026-11-02T09:00:00.123456+00'::timestamptz")} AS at`,
      );
    });
    expect(rows).toEqual([{ at: "2026-11-02T09:00:00.123456Z" }]);
  });

  it("shares the pool with Prisma", async () => {
    await insertCustomer("CUS-1");
    const found = await pg.db.prisma.customers.findMany();
    expect(found.map((customer) => customer.ref)).toEqual(["CUS-1"]);
    expect(pg.db.pool.totalCount).toBeGreaterThan(0);
  });
});

describe("names", () => {
  it("stand for one text, whichever connection knows it: a second text is refused before anything is sent", async () => {
    const { db } = pg;
    // Two connections, so that neither has both: only the pool can tell.
    await db.tx(async (tx) => {
      await tx.sql("test.named", "SELECT 1 AS n");
      await expect(db.sql("test.named", "SELECT 2 AS n")).rejects.toThrow(
        '"test.named" stands for two statements',
      );
    });
    await expect(db.tx((tx) => tx.sql("test.named", "SELECT 2 AS n"))).rejects.toThrow("stands for two");
    await expect(
      db.tx(async (tx) => {
        tx.later("test.named", "SELECT 2 AS n");
      }),
    ).rejects.toThrow("stands for two");
    expect(await db.sql("test.named", "SELECT 1 AS n")).toEqual([{ n: 1 }]);
  });
});

describe("transactions", () => {
  it("two that deadlock both happen, the loser on its second try", async () => {
    await insertCustomer("A");
    await insertCustomer("B");
    const bothHoldOne = barrier(2);
    const tries = { value: 0 };
    const cross = (first: string, second: string) => {
      let tried = 0;
      return pg.db.tx(async (tx) => {
        tried += 1;
        tries.value += 1;
        await tx.sql("t.up", "UPDATE customers SET name = name || 'x' WHERE id = $1", [first]);
        if (tried === 1) await bothHoldOne();
        await tx.sql("t.up", "UPDATE customers SET name = name || 'x' WHERE id = $1", [second]);
      });
    };
    await Promise.all([cross("A", "B"), cross("B", "A")]);
    expect(tries.value).toBe(3);
    const rows = await pg.db.sql<{ name: string }>(undefined, "SELECT name FROM customers ORDER BY id");
    expect(rows.map((row) => row.name)).toEqual(["nxx", "nxx"]);
  });

  it("a write skew under serializable is run again and sees the other's row", async () => {
    const bothHaveRead = barrier(2);
    const insertIfAlone = (id: string) => {
      let tried = 0;
      return pg.db.tx(
        async (tx) => {
          tried += 1;
          const rows = await tx.sql(undefined, "SELECT id FROM customers");
          if (tried === 1) await bothHaveRead();
          if (rows.length > 0) return "second";
          await tx.sql(
            undefined,
            "INSERT INTO customers (id, ref, name, email, email_normal) VALUES ($1, $1, '', '', '')",
            [id],
          );
          return "first";
        },
        { isolation: "serializable" },
      );
    };
    const answers = await Promise.all([insertIfAlone("A"), insertIfAlone("B")]);
    expect(answers.sort()).toEqual(["first", "second"]);
  });

  it("stops trying after the given number of retries and shows the last error", async () => {
    let tried = 0;
    const failing = pg.db.tx(
      async (tx) => {
        tried += 1;
        await tx.sql(undefined, "DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '40001'; END $$");
      },
      { retries: 2 },
    );
    await expect(failing).rejects.toMatchObject({ code: "40001" });
    expect(tried).toBe(3);
  });

  it("a single statement that the database undid is run again by itself, a bounded number of times", async () => {
    await pg.db.sql(undefined, "CREATE SEQUENCE IF NOT EXISTS test_tries");
    const failing = (times: number) =>
      pg.db.sql(
        undefined,
        `DO $$ BEGIN IF nextval('test_tries') <= ${times} THEN RAISE EXCEPTION 'x' USING ERRCODE = '40P01'; END IF; END $$`,
      );
    await expect(failing(2)).resolves.toEqual([]);
    await expect(failing(1_000)).rejects.toMatchObject({ code: "40P01" });
    const [row] = await pg.db.sql<{ tried: bigint }>(undefined, "SELECT last_value AS tried FROM test_tries");
    expect(row?.tried).toBe(3n + 7n);
    await pg.db.sql(undefined, "DROP SEQUENCE test_tries");
  });

  it("a swallowed statement error is not taken for a commit", async () => {
    const swallowed = pg.db.tx(async (tx) => {
      await tx.sql(undefined, "SELECT 1/0").catch(() => {});
    });
    await expect(swallowed).rejects.toThrow("rolled back");
  });

  it("statements asked for at once go one after another in their order; of what follows a failed one nothing stays", async () => {
    const warnings: string[] = [];
    const hear = (warning: Error): void => void warnings.push(warning.message);
    process.on("warning", hear);
    try {
      const found = await pg.db.tx((tx) =>
        Promise.all([1, 2, 3].map((n) => tx.sql<{ n: number }>(undefined, "SELECT $1::int AS n", [n]))),
      );
      expect(found).toEqual([[{ n: 1 }], [{ n: 2 }], [{ n: 3 }]]);
      const insert =
        "INSERT INTO customers (id, ref, name, email, email_normal) VALUES ($1, $1, 'n', 'e', 'e')";
      const failed = pg.db.tx((tx) =>
        Promise.all([
          tx.sql(undefined, insert, ["CUS-1"]),
          tx.sql(undefined, "SELECT 1 / $1::int", [0]),
          tx.sql(undefined, insert, ["CUS-2"]),
        ]),
      );
      await expect(failed).rejects.toThrow(/division by zero/);
      expect(await pg.db.sql(undefined, "SELECT ref FROM customers")).toEqual([]);
      // pg warns when a statement is given to a connection that is busy.
      expect(warnings).toEqual([]);
    } finally {
      process.off("warning", hear);
    }
  });

  it("a tx object kept after the end is refused instead of running outside", async () => {
    const kept = await pg.db.tx(async (tx) => tx);
    await expect(kept.sql(undefined, "SELECT 1")).rejects.toThrow("has ended");
  });

  it("a session killed between two statements fails the transaction, not the process, and the pool recovers", async () => {
    const broken = pg.db.tx(async (tx) => {
      const [me] = await tx.sql<{ pid: number }>(undefined, "SELECT pg_backend_pid() AS pid");
      await pg.db.sql(undefined, "SELECT pg_terminate_backend($1)", [me?.pid]);
      await tx.sql(undefined, "SELECT 1");
    });
    const error = await broken.catch((caught: unknown) => caught);
    expect(error).not.toBeInstanceOf(CommitUnknownError);
    expect(["connection", "shutdown"]).toContain(dbFailure(error)?.kind);
    expect(await pg.db.sql(undefined, "SELECT 1 AS one")).toEqual([{ one: 1 }]);
  });

  it("a connection lost under COMMIT is reported as unknown and not run again", async () => {
    let tried = 0;
    await pg.db.sql(
      undefined,
      `CREATE OR REPLACE FUNCTION test_die() RETURNS trigger LANGUAGE plpgsql AS
       $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(30); RETURN NULL; END $$`,
    );
    await pg.db.sql(
      undefined,
      `CREATE CONSTRAINT TRIGGER test_die AFTER INSERT ON customers DEFERRABLE INITIALLY DEFERRED
       FOR EACH ROW EXECUTE FUNCTION test_die()`,
    );
    try {
      const lost = pg.db.tx(async (tx) => {
        tried += 1;
        await tx.sql(
          undefined,
          "INSERT INTO customers (id, ref, name, email, email_normal) VALUES ('Z', 'Z', '', '', '')",
        );
      });
      await expect(lost).rejects.toBeInstanceOf(CommitUnknownError);
      expect(tried).toBe(1);
    } finally {
      await pg.db.sql(undefined, "DROP TRIGGER test_die ON customers");
    }
  });
});

describe("what failed, by SQLSTATE", () => {
  it("names the violated unique constraint, through sql and through Prisma", async () => {
    await insertCustomer("CUS-1");
    const bare = await insertCustomer("CUS-1").catch((caught: unknown) => caught);
    expect(isUniqueViolation(bare, "customers_pkey")).toBe(true);
    expect(isUniqueViolation(bare, "customers_ref_is_unique")).toBe(false);
    const prisma = await pg.db.prisma
      .$executeRawUnsafe("INSERT INTO customers SELECT * FROM customers")
      .catch((caught: unknown) => caught);
    expect(isUniqueViolation(prisma)).toBe(true);
  });

  it("names the violated check", async () => {
    const error = await pg.db
      .sql(undefined, "INSERT INTO clock_offset (singleton) VALUES (false)")
      .catch((caught: unknown) => caught);
    expect(isCheckViolation(error, "clock_offset_is_one_row")).toBe(true);
  });

  it("knows a serialization failure that Prisma wraps", async () => {
    const error = await pg.db.prisma
      .$executeRawUnsafe("DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '40P01'; END $$")
      .catch((caught: unknown) => caught);
    expect(dbFailure(error)?.kind).toBe("deadlock");
  });
});

describe("the clock", () => {
  it("moves for everybody on the database and comes back", async () => {
    const before = await dbNow(pg.db);
    await setClockOffset(pg.db, 3_600_000);
    expect((await dbNow(pg.openAnother())).getTime() - before.getTime()).toBeGreaterThanOrEqual(3_600_000);
    expect(await clockOffset(pg.db)).toBe(3_600_000);
  });

  it("is set back by the reset between tests", async () => {
    expect(await clockOffset(pg.db)).toBe(0);
  });
});
