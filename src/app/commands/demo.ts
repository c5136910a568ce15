import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { demoEnvironment } from "../../config/host.js";
import { runDemo } from "../demo/index.js";
import { findStory, playStory } from "../demo/play.js";
import { portIsFree } from "../demo/ports.js";
import { CommandFailure } from "../exit.js";
import { makeFolder } from "../files.js";
import { complain, print } from "../output.js";
import { stopSignal } from "../stop-signal.js";

/** `countersign demo [--story NAME --out DIR [--watch]]` */
export async function demo(options: { story?: string; out: string; watch?: boolean }): Promise<void> {
  const settings = demoEnvironment();
  const stopped = stopSignal().signal;
  if (options.story === undefined) {
    await runDemo({ ...settings, dataDir: path.resolve(".countersign") }, stopped);
    return;
  }
  // What cannot be played or written is said before anything is started for it.
  findStory(options.story);
  makeFolder(path.resolve(options.out));
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
      stopped,
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
