/** The README tells nothing that is not so: commands, stories, variables with their defaults, files. */
import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { STORIES } from "../../src/app/demo/stories/index.js";
import { ConfigError, type Environment, parseConfig } from "../../src/config/index.js";

const README = readFileSync("README.md", "utf8");
const DOCS = [
  "agent",
  "metrics",
  "payments-sandbox",
  "policy",
  "runbook",
  "sandbox",
  "security",
  "slack-setup",
];

const WHOLE: Environment = {
  DATABASE_URL: "postgresql://u:p@db:5432/shop",
  SLACK_BOT_TOKEN: "xoxb-1",
  SLACK_SIGNING_SECRET: "s",
  SLACK_TICKETS_CHANNEL: "C1",
  SLACK_APPROVALS_CHANNEL: "C2",
  SLACK_OPS_CHANNEL: "C3",
  STRIPE_SECRET_KEY: "sk_test_1",
  STRIPE_WEBHOOK_SECRET: "whsec_1",
  ANTHROPIC_API_KEY: "sk-1",
};

/** What comes of an environment: the configuration, or what is wrong with it. */
function outcome(env: Environment): unknown {
  try {
    return parseConfig(["database", "slack", "payments", "seals"], env);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
}

/** First cell and second cell of the rows that begin with a variable. */
const rows = [...README.matchAll(/^\| `([A-Z][A-Z0-9_]+)` +\|([^|]*)\|([^|\n]*)\|?$/gmu)].map(
  ([, name = "", second = "", third = ""]) => ({
    name,
    byDefault: third === "" ? null : (/`([^`]+)`/u.exec(second)?.[1] ?? null),
  }),
);

describe("configuration", () => {
  it("names every variable that is read, and none that is not", () => {
    const source = readFileSync("src/config/parse.ts", "utf8");
    const read = [...source.matchAll(/(?:reader\.\w+(?:<[^(]*>)?|ms|channel)\(\s*"([A-Z][A-Z0-9_]+)"/gu)]
      .map(([, name = ""]) => name)
      .filter((name) => name !== "COUNTERSIGN_FAILPOINTS"); // for tests alone
    expect(rows.map((row) => row.name).sort()).toEqual([...new Set(read)].sort());
  });

  it("tells the defaults as they are, and each variable makes a difference", () => {
    const usual = outcome(WHOLE);
    for (const { name, byDefault } of rows) {
      if (byDefault !== null) expect(outcome({ ...WHOLE, [name]: byDefault }), name).toEqual(usual);
      expect(outcome({ ...WHOLE, [name]: "\u0001" }), name).not.toEqual(usual);
    }
    expect(rows.filter((row) => row.byDefault !== null).length).toBeGreaterThan(15);
  });
});

describe("commands", () => {
  it("exist, the ones of npm and the program's own", () => {
    const { scripts } = JSON.parse(readFileSync("package.json", "utf8")) as {
      scripts: Record<string, string>;
    };
    const npm = [...README.matchAll(/npm run ([\w:-]+)/gu)].map(([, name = ""]) => name);
    expect(npm.filter((name) => !Object.hasOwn(scripts, name))).toEqual([]);
    expect(npm).toEqual(expect.arrayContaining(["demo", "verify", "test:kills"]));
    const cli = readFileSync("src/app/cli.ts", "utf8");
    const known = new Set([...cli.matchAll(/\.command\("([\w-]+)/gu)].map(([, name = ""]) => name));
    const used = [...README.matchAll(/countersign ((?:[a-z]+ ?){1,2})/gu)].flatMap(([, words = ""]) =>
      words.trim().split(" ").slice(0, 1),
    );
    expect(used.filter((name) => !known.has(name))).toEqual([]);
    expect(used.length).toBeGreaterThan(8);
  });

  it("play the stories that there are", () => {
    const told = /`held-refund`[\s\S]*?`over-limit`/u.exec(README)?.[0] ?? "";
    const names = [...told.matchAll(/`([a-z-]+)`/gu)].map(([, name = ""]) => name);
    expect(names.sort()).toEqual(STORIES.map((story) => story.name).sort());
  });
});

describe("links", () => {
  it("of the README and the docs lead to files that are there", () => {
    const pages = [["README.md", ""], ...DOCS.map((name) => [`docs/${name}.md`, "docs/"])];
    const missing = pages.flatMap(([file = "", base = ""]) =>
      [...readFileSync(file, "utf8").matchAll(/\]\((?!https?:|#)([^)#\s]+)/gu)]
        .map(([, target = ""]) => `${base}${target}`)
        .filter((target) => !existsSync(target)),
    );
    expect(missing).toEqual([]);
  });
});
