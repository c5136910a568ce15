/** What on-call and whoever installs the app are told to type and to grant: each exists, and nothing more is asked for. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse as parseYaml } from "yaml";
import { OPS_HELP, parseOpsCommand } from "../../src/ops/parse.js";
import { INCIDENT_KINDS, incidentTitle } from "../../src/slack/cards/incident-card.js";
import { productFiles, ROOT } from "./source.js";

const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");
const runbook = read("docs/runbook.md");
const setup = read("docs/slack-setup.md");
const manifest = parseYaml(read("manifest.yml")) as {
  features: { slash_commands: { command: string; usage_hint: string }[] };
  oauth_config: { scopes: { bot: string[] } };
  settings: { event_subscriptions: { bot_events: string[] } };
};

const inCode = (text: string): string[] => [...text.matchAll(/`([^`\n]+)`/g)].map((match) => match[1] ?? "");

/** As a person would type it: placeholders filled in, options left out. */
const typed = (usage: string): string =>
  usage
    .replace(/^\/ops\s*/, "")
    .replace(/\s*\[[^\]]*\]/g, "")
    .replace("INCIDENT", "inc_0192d3a4")
    .replace(/\bORDER\b/, "ORD-10042")
    .replace(/\bID\b/, "op_0192d3a4");

describe("docs/runbook.md", () => {
  it("every /ops command in it is one, as written", () => {
    const commands = inCode(runbook).filter((code) => code.startsWith("/ops"));
    expect(commands.length).toBeGreaterThan(10);
    for (const command of commands)
      expect(parseOpsCommand(typed(command)), command).toMatchObject({ ok: true });
  });

  it("every verb that changes something, and the looks that go with it, is taught there", () => {
    const taught = inCode(runbook).filter((code) => code.startsWith("/ops"));
    for (const verb of [
      "list",
      "show",
      "events",
      "retry",
      "reopen",
      "incidents",
      "close",
      "freeze",
      "thaw",
      "health",
    ]) {
      expect(
        taught.some((command) => command.split(" ")[1] === verb),
        verb,
      ).toBe(true);
    }
  });

  it("every shell command in it is one of the command line's", () => {
    const cli = read("src/app/cli.ts");
    const known = new Set([...cli.matchAll(/\.command\("([a-z-]+)/g)].map((match) => match[1] ?? ""));
    const commands = [...inCode(runbook), ...inCode(read("README.md"))].filter((code) =>
      code.startsWith("countersign "),
    );
    expect(commands.length).toBeGreaterThan(2);
    for (const command of commands) {
      const words = command.split(" ").slice(1);
      const option = words.findIndex((word) => word.startsWith("--"));
      const verbs = words
        .slice(0, option < 0 ? words.length : option)
        .filter((word) => /^[a-z]+$/.test(word));
      for (const verb of verbs) expect(known, command).toContain(verb);
      for (const option of words.filter((word) => word.startsWith("--")))
        expect(cli, command).toContain(option);
    }
  });

  it("every alert says what to do first, by a section of it and commands that exist", () => {
    const { groups } = parseYaml(read("docs/alerts.rules.yml")) as {
      groups: {
        rules: {
          alert: string;
          expr: string;
          labels: { severity: string };
          annotations: Record<string, string>;
        }[];
      }[];
    };
    const rules = groups.flatMap((group) => group.rules);
    expect(rules.length).toBeGreaterThan(10);
    const sections = [...runbook.matchAll(/^## (.+)$/gm)].map((match) => match[1]);
    for (const { alert, labels, annotations } of rules) {
      expect(["page", "ticket"], alert).toContain(labels.severity);
      expect(annotations["summary"], alert).toMatch(/^[A-Z].*[^.]$/);
      const [, section] = /See the runbook, "([^"]+)"\.$/.exec(annotations["do"] ?? "") ?? [];
      expect(sections, alert).toContain(section);
      for (const [, command = ""] of (annotations["do"] ?? "").matchAll(/(\/ops [a-z]+(?: [A-Z_]+)?)/g)) {
        expect(parseOpsCommand(typed(command)), command).toMatchObject({ ok: true });
      }
    }
  });

  it("every metric, variable, button and card in it exists", () => {
    const metrics = read("docs/metrics.md");
    const config = read("src/config/parse.ts");
    const cards = ["ops-cards", "incident-card"].map((file) => read(`src/slack/cards/${file}.ts`)).join("\n");
    for (const code of inCode(runbook)) {
      if (/^countersign_\w+$/.test(code)) expect(metrics).toContain(`\`${code}\``);
      else if (/^[A-Z]+(_[A-Z]+)+$/.test(code)) expect(config).toContain(`"${code}"`);
    }
    const buttons = [...runbook.matchAll(/\*\*([A-Z][a-z]+(?: [a-z]+)*)\*\*/g)].map(
      (match) => match[1] ?? "",
    );
    expect(buttons.length).toBeGreaterThan(4);
    for (const button of buttons) expect(cards, button).toContain(`"${button}"`);
    for (const kind of INCIDENT_KINDS)
      expect(runbook.toLowerCase()).toContain(`| ${incidentTitle(kind).toLowerCase()} (\`${kind}\`) `);
  });
});

describe("/ops help and the manifest's hint", () => {
  it("name the same commands", () => {
    const hint = manifest.features.slash_commands.find(({ command }) => command === "/ops")?.usage_hint;
    expect(hint?.split(" | ")).toEqual(OPS_HELP.map(({ usage }) => usage));
  });
});

/** What Slack asks for each method (docs.slack.dev, method pages); none: any token may. */
const METHOD_SCOPES: Readonly<Record<string, readonly string[]>> = {
  "auth.test": [],
  "bots.info": ["users:read"],
  "chat.postEphemeral": ["chat:write"],
  "chat.postMessage": ["chat:write"],
  "chat.update": ["chat:write"],
  "conversations.history": ["channels:history", "groups:history"],
  "conversations.info": ["channels:read", "groups:read"],
  "conversations.replies": ["channels:history", "groups:history"],
  "usergroups.users.list": ["usergroups:read"],
  "users.info": ["users:read"],
  "views.open": [],
  "views.publish": [],
  "views.update": [],
};
const EVENT_SCOPES: Readonly<Record<string, readonly string[]>> = {
  app_home_opened: [],
  app_mention: ["app_mentions:read"],
  app_uninstalled: [],
  channel_shared: ["channels:read", "groups:read"],
  channel_unshared: ["channels:read", "groups:read"],
  "message.channels": ["channels:history"],
  "message.groups": ["groups:history"],
  tokens_revoked: [],
};

describe("scopes", () => {
  const called = new Set(
    productFiles()
      .filter(({ path }) => path.startsWith("src/slack/"))
      .flatMap(({ path }) =>
        [
          ...read(path).matchAll(
            /\b(?:client|interactive|reads|sends?)\.((?:auth|bots|chat|conversations|usergroups|users|views)(?:\.[a-zA-Z]+)+)\(/g,
          ),
        ].map((match) => match[1] ?? ""),
      ),
  );

  it("each method that is called is known here, and the manifest asks for exactly what they and the events need", () => {
    expect([...called].sort()).toEqual(Object.keys(METHOD_SCOPES).sort());
    const { bot_events: events } = manifest.settings.event_subscriptions;
    expect([...events].sort()).toEqual(Object.keys(EVENT_SCOPES).sort());
    const needed = new Set([
      "commands",
      ...[...called].flatMap((method) => METHOD_SCOPES[method] ?? []),
      ...events.flatMap((event) => EVENT_SCOPES[event] ?? []),
    ]);
    expect([...manifest.oauth_config.scopes.bot].sort()).toEqual([...needed].sort());
  });

  it("docs/slack-setup.md explains each one, and no other", () => {
    const table = setup.slice(setup.indexOf("## Scopes"));
    const explained = [...table.matchAll(/^\| (`[^|]+) \|/gm)].flatMap((match) => inCode(match[1] ?? ""));
    expect(explained.sort()).toEqual([...manifest.oauth_config.scopes.bot].sort());
  });
});
