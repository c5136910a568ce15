import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { demoEnvironment } from "../../config/host.js";
import { runDemo } from "../demo/index.js";
import { playStory } from "../demo/play.js";
import { portIsFree } from "../demo/ports.js";
import { CommandFailure } from "../exit.js";
import { complain, print } from "../output.js";

/** `countersign demo [--story NAME --out DIR [--watch]]` */
export async function demo(options: { story?: string; out: string; watch?: boolean }): Promise<void> {
  const settings = demoEnvironment();
  if (options.story === undefined) {
    await runDemo({ ...settings, dataDir: path.resolve(".countersign") }, interrupted());
    return;
  }
  const isFree = await portIsFree(settings.slackPort);
  if (!isFree) {
    complain(`Port ${settings.slackPort} is taken: the page gets another one. DEMO_PORT chooses it.`);
  }
  // A story begins with an empty world, and only its two files stay.
  const dataDir = mkdtempSync(path.join(tmpdir(), "countersign-story-"));
  let wrong: readonly string[];
  try {
    wrong = await playStory({
      name: options.story,
      slackPort: isFree ? settings.slackPort : 0,
      watch: options.watch === true,
      stopped: interrupted(),
      outDir: path.resolve(options.out),
      dataDir,
      ...(settings.databaseServerUrl === undefined ? {} : { databaseServerUrl: settings.databaseServerUrl }),
    });
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
  if (wrong.length > 0) {
    throw new CommandFailure(
      `The story did not end as it should:\n${wrong.map((line) => `  ${line}`).join("\n")}`,
    );
  }
  print(
    `As it should be. See ${path.join(options.out, "trace.json")} and ${path.join(options.out, "effect-report.json")}.`,
  );
}

/** Aborted by the first Ctrl-C or SIGTERM. */
function interrupted(): AbortSignal {
  const controller = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => controller.abort());
  return controller.signal;
}
