import path from "node:path";
import { demoEnvironment } from "../../config/host.js";
import { runDemo } from "../demo/index.js";
import { playStory } from "../demo/play.js";
import { portIsFree } from "../demo/ports.js";
import { CommandFailure } from "../exit.js";
import { print } from "../output.js";

/** `countersign demo [--story NAME --out DIR]` */
export async function demo(options: { story?: string; out: string }): Promise<void> {
  const settings = demoEnvironment();
  if (options.story === undefined) {
    await runDemo({ ...settings, dataDir: path.resolve(".countersign") }, interrupted());
    return;
  }
  const wrong = await playStory({
    name: options.story,
    slackPort: (await portIsFree(settings.slackPort)) ? settings.slackPort : 0,
    stopped: interrupted(),
    outDir: path.resolve(options.out),
    dataDir: path.resolve(options.out, ".data"),
    ...(settings.databaseServerUrl === undefined ? {} : { databaseServerUrl: settings.databaseServerUrl }),
  });
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
