// Runs one postgres and outlives nobody: it stops the server when its standard input ends, which is what happens when the
// process that started it exits, crashes or is killed. Started by embedded.ts in a session of its own, so that a Ctrl-C in
// the terminal reaches the program and not the database under it.
//
// argv: JSON { postgres, pgCtl, dataDir, args, uid?, gid?, logFile, env }. Answers one line of JSON on standard output:
// { ready: true, pid } or { ready: false, code, log }.

import { spawn, spawnSync } from "node:child_process";
import { createWriteStream } from "node:fs";

/** Fast shutdown waits for backends to roll back; after this the server is told to stop at once. */
const FAST_MS = 15_000;
const IMMEDIATE_MS = 5_000;
const LOG_TAIL = 4_000;

const spec = JSON.parse(process.argv[2]);
const log = createWriteStream(spec.logFile, { flags: "a", mode: 0o600 });
log.on("error", () => {});
process.stdout.on("error", () => {});
// The terminal's signals are for the program above; it tells us by closing our input.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => stop());

const server = spawn(spec.postgres, ["-D", spec.dataDir, ...spec.args], {
  stdio: ["ignore", "ignore", "pipe"],
  cwd: spec.dataDir,
  env: spec.env,
  ...(spec.uid === undefined ? {} : { uid: spec.uid, gid: spec.gid }),
});

let tail = "";
let answered = false;
let stopping = false;

server.stderr.setEncoding("utf8");
server.stderr.on("data", (text) => {
  log.write(text);
  if (answered) return;
  tail = (tail + text).slice(-LOG_TAIL);
  if (text.includes("ready to accept connections")) answer({ ready: true, pid: server.pid });
});
server.on("error", (error) => finish({ ready: false, code: null, log: String(error) }));
server.on("close", (code) => finish({ ready: false, code, log: tail }));

process.stdin.on("error", () => stop());
process.stdin.on("end", () => stop());
process.stdin.on("close", () => stop());
process.stdin.resume();

function answer(message) {
  if (answered) return;
  answered = true;
  process.stdout.write(`${JSON.stringify(message)}\n`);
}

function finish(message) {
  answer(message);
  log.end(() => process.exit(0));
}

function stop() {
  if (stopping) return;
  stopping = true;
  if (process.platform === "win32") {
    spawnSync(spec.pgCtl, ["-D", spec.dataDir, "-m", "fast", "-w", "stop"], { stdio: "ignore" });
    return;
  }
  server.kill("SIGINT");
  setTimeout(() => server.kill("SIGQUIT"), FAST_MS).unref();
  setTimeout(() => server.kill("SIGKILL"), FAST_MS + IMMEDIATE_MS).unref();
}
