// A widely used library for durable execution doing the least that could be called the same: a workflow of three recorded steps,
// the middle one with the HTTP call. In a process of its own, as its users run it, so that neither it nor the product works in the
// other's time. Started with the database's URL, the provider's and the amount; answers to messages, see start-durable-execution.ts.
import { Pool } from "undici";

// A development dependency: no part of the product names it as a module.
const PACKAGE = "@dbos-inc/dbos-sdk";
const [databaseUrl, apiUrl, amount] = process.argv.slice(2);

const library = await import(PACKAGE).catch((error) => {
  if (error.code === "ERR_MODULE_NOT_FOUND") return null;
  throw error;
});
if (library === null) {
  process.send({ is: "missing" });
  process.disconnect();
} else {
  await offer(library.DBOS);
}

/** Its usual settings; a logger that writes nothing can only be to its advantage. */
async function offer(dbos) {
  const quiet = { info: () => {}, debug: () => {}, warn: () => {}, error: () => {} };
  dbos.setConfig({ name: "countersign-bench", systemDatabaseUrl: databaseUrl, logger: quiet });
  const http = new Pool(apiUrl, { connections: 64 });
  const refund = dbos.registerWorkflow(
    async (n) => {
      const minor = await dbos.runStep(async () => Number(amount), { name: "prepare" });
      const id = await dbos.runStep(() => post(http, n, minor), { name: "send" });
      return dbos.runStep(async () => id, { name: "settle" });
    },
    { name: "refund" },
  );
  await dbos.launch();
  process.on("message", async (asked) =>
    process.send({ is: "measured", measured: await lanes(asked, refund) }),
  );
  process.on("disconnect", async () => {
    await dbos.shutdown();
    await http.close();
    process.exit(0);
  });
  process.send({ is: "ready" });
}

async function post(http, n, minor) {
  const answer = await http.request({
    method: "POST",
    path: "/v1/refunds",
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: new URLSearchParams({
      payment_intent: `pi_${String(n).padStart(6, "0")}`,
      amount: String(minor),
    }).toString(),
  });
  return answer.body.text();
}

/** As `inLanes` of measure.ts. */
async function lanes({ lanes, seconds, most }, operation) {
  let next = 0;
  const cpu = process.cpuUsage();
  const began = process.hrtime.bigint();
  const until = began + BigInt(Math.round(seconds * 1e9));
  const lane = async () => {
    while (process.hrtime.bigint() < until && next < most) {
      const n = next;
      next += 1;
      await operation(n);
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  const used = process.cpuUsage(cpu);
  return {
    operations: next,
    seconds: Number(process.hrtime.bigint() - began) / 1e9,
    cpuMs: (used.user + used.system) / 1_000,
  };
}
