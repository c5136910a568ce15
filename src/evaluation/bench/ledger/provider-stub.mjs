// A provider that accepts every refund and keeps nothing but a count: in a process of its own, so that its processor time is
// nobody's. Prints its port when it listens; GET /count says how many it made.
import { createServer } from "node:http";

let made = 0;
const server = createServer((request, answer) => {
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => {
    answer.setHeader("content-type", "application/json");
    if (request.url === "/count") {
      answer.end(JSON.stringify({ made }));
      return;
    }
    made += 1;
    const form = new URLSearchParams(Buffer.concat(chunks).toString());
    answer.end(
      JSON.stringify({
        id: `re_stub_${made}`,
        object: "refund",
        amount: Number(form.get("amount")),
        currency: "gbp",
        status: "succeeded",
        payment_intent: form.get("payment_intent"),
        metadata: {
          operation_id: form.get("metadata[operation_id]") ?? "",
          operation_key: form.get("metadata[operation_key]") ?? "",
        },
        created: 1_796_000_000,
      }),
    );
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => process.stdout.write(`${server.address().port}\n`));
process.on("disconnect", () => process.exit(0));
