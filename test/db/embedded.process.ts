/** A program that uses the embedded PostgreSQL, for the tests that kill it. Says where the server is, then waits. */
import { startEmbedded } from "../../src/db/embedded.js";

const server = await startEmbedded({ dataDir: process.argv[2] ?? "", unsafeFast: true });
process.stdout.write(`${JSON.stringify({ url: server.url(), pid: server.pid })}\n`);
// Holds the process until it is killed: the server alone would not.
process.stdin.resume();
